"""The command `swift-rlvr`: makes datasets, trains, evaluates and asks models, grades completions, reports on runs.

Errors in what the user gave end with exit code 2 and a message that names the flag or the file; everything else is a
bug and shows its traceback.
"""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import chat as cli_chat
from swift_rlvr.cli import countdown as cli_countdown
from swift_rlvr.cli import dataset as cli_datasets
from swift_rlvr.cli import evaluate as cli_evaluate
from swift_rlvr.cli import rewards as cli_rewards
from swift_rlvr.cli import train as cli_train
from swift_rlvr.cli import train_trl as cli_training
from swift_rlvr.errors import InputError

app = typer.Typer(
    help="Verifiable rewards and task datasets for GRPO with ms-swift.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
dataset_app = typer.Typer(help="Make, check, show and prepare datasets.", no_args_is_help=True)
make_app = typer.Typer(help="Write a generated dataset to a file.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
dataset_app.add_typer(make_app, name="make")
cli_datasets.add_commands(dataset_app)
make_app.command("countdown")(cli_countdown.make_countdown)
app.command("solve")(cli_countdown.solve_countdown)
app.command("explain")(cli_rewards.explain)
app.command("score")(cli_rewards.score)
app.command("train")(cli_train.train)
app.command("train-trl")(cli_training.train_trl)
app.command("evaluate")(cli_evaluate.evaluate_model)
app.command("compare")(cli_evaluate.compare_evaluations)
app.command("report")(cli_evaluate.report_run)
app.command("chat")(cli_chat.chat)
console = Console()


def main() -> None:
    """Run the command line."""
    try:
        app()
    except InputError as error:
        said = Text.assemble(("Error:", "red"), f" {error}")  # no markup: the message may quote a file
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
