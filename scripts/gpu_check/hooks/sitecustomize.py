"""Python imports this in every process whose PYTHONPATH has this folder: where vLLM's processes load
the patches of swift-rlvr, they load what the check watches there too.

vLLM loads plugins by entry points, and the check is in no wheel.
"""

import contextlib

with contextlib.suppress(ImportError):  # another environment's Python, such as uv's
    from swift_rlvr.training import ms_swift

    register = ms_swift.register_vllm_plugin

    def register_and_watch() -> None:
        """The patches first: what is watched is what they put in place."""
        register()
        import gpu_check_watch

        gpu_check_watch.watch_vllm()

    ms_swift.register_vllm_plugin = register_and_watch
