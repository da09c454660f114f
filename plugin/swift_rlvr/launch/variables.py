"""The variables of a launch, which say what the machine has and how to start."""

from dataclasses import dataclass

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, setting


@dataclass(frozen=True)
class Variables(Settings):
    """The launcher's own variables, which have these names in capitals."""

    variable_prefix = ""

    start_server: bool = setting(True, "0: use servers that are already running.")
    server_timeout: int = setting(1800, "Seconds to wait for the servers.", at_least=1)
    resume: str = setting(
        "0",
        "1: resume from the last complete checkpoint; auto: or start over if there is none.",
        choices=("0", "1", "auto"),
    )
    restarts: int = setting(0, "How often to restart a server that died.", at_least=0)
    verbose: bool = setting(False, "1: show what the programs print.")
    dry_run: bool = setting(False, "1: stop after the plan.")
    train_gpus: tuple[str, ...] = setting((), "The trainers' GPUs, such as 0,1.")
    rollout_gpus: tuple[str, ...] = setting((), "The server's GPUs.")
    nproc_per_node: int | None = setting(
        None, "Trainers on each machine. Default: at most as many as the recipe has.", at_least=1
    )
    nnodes: int = setting(1, "Machines that train.", at_least=1)
    node_rank: int = setting(0, "Which of them this is.", at_least=0)
    master_addr: str | None = setting(None, "An address of node 0.")
    master_port: int | None = setting(None, "Where the ranks meet.", at_least=1)

    def __post_init__(self) -> None:
        """InputError for a value that cannot be used."""
        super().__post_init__()
        self.require(self.node_rank < self.nnodes, "node_rank", f"below NNODES ({self.nnodes})")
        if self.nnodes > 1 and not self.master_addr:
            raise InputError("is needed with several nodes: an address of node 0", "master_addr")
        gpus = [*self.train_gpus, *self.rollout_gpus]
        if len(set(gpus)) < len(gpus):
            problem = f"names a GPU twice, or one of ROLLOUT_GPUS: {', '.join(gpus)}"
            raise InputError(problem, "train_gpus")
