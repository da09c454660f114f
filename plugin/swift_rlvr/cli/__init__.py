from swift_rlvr.cli.app import app, main

__all__ = ["app", "main"]
