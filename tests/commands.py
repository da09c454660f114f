"""Running `swift-rlvr` inside the process of the tests."""

from typer.testing import CliRunner

from swift_rlvr.cli.app import app

WIDE = {"COLUMNS": "400"}
"""A terminal on which no line of a message breaks."""


def ran(*arguments: object, code: int = 0, stdin: str | None = None, columns: int = 80) -> str:
    """What `swift-rlvr ARGUMENTS` prints on a terminal of so many columns."""
    result = CliRunner().invoke(
        app, list(map(str, arguments)), input=stdin, env={"COLUMNS": str(columns)}
    )
    assert result.exit_code == code, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """The message with which `swift-rlvr ARGUMENTS` ends because of a user's mistake, on one
    line.
    """
    result = CliRunner().invoke(app, list(map(str, arguments)), env=WIDE)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit) and not result.stdout
    return " ".join(result.stderr.replace("│", " ").split())
