"""What jobs on clusters hand over to the launcher: scripts/slurm.sh, and the shell parts of
scripts/cluster/ with the variables that Kubeflow's operator and SkyPilot set.

The launcher makes its real plan of them, in dry runs. srun and scontrol are stand-ins.
"""

import os
import re
import shlex
import signal
import subprocess
import time

import pytest
import yaml

from helpers import bare_environment, flags, run
from paths import ROOT
from present import present

RECIPE = "scripts/configs/countdown.yaml"
CLUSTER = ROOT / "scripts" / "cluster"


def commands(shown: subprocess.CompletedProcess) -> list[str]:
    """The commands at the end of a dry run."""
    assert shown.returncode == 0, shown.stderr
    return [line for line in shown.stdout.splitlines() if "swift_rlvr.training.ms_swift" in line]


def rendezvous_of(trainer: str) -> dict[str, str]:
    """The variables before a trainer's command."""
    return dict(word.split("=", 1) for word in shlex.split(trainer) if re.match("[A-Z_]+=", word))


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


# As srun of SLURM 22.05 and later: it takes the cores of a task from its own flag alone. It runs the
# command of each node, one after the other.
SRUN = """#!/bin/sh
nodes=$SLURM_JOB_NUM_NODES
cores=1
while [ "${1#--}" != "$1" ]; do
  case $1 in
    --nodes=*) nodes=${1#--nodes=} ;;
    --cpus-per-task=*) cores=${1#--cpus-per-task=} ;;
  esac
  shift
done
node=0
while [ $node -lt "$nodes" ]; do
  echo "a task with $cores cores on node $node" >>"$SRUN_LOG"
  SLURM_NODEID=$node "$@" || exit
  node=$((node + 1))
done
"""
SCONTROL = """#!/bin/sh
case $1 in
  show) printf 'gpu07\\ngpu08\\n' ;;
  requeue) echo "requeued $2" >>"$SRUN_LOG"; kill -TERM $(cat "$SRUN_LOG.pids") ;;
esac
"""


@pytest.fixture
def slurm(tmp_path):
    """The variables of a job of two nodes, and stand-ins for its programs in tmp_path."""
    write_program(tmp_path / "srun", SRUN)
    write_program(tmp_path / "scontrol", SCONTROL)
    return {
        "SLURM_SUBMIT_DIR": str(ROOT),
        "SLURM_JOB_NODELIST": "gpu[07-08]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_ID": "1234567",
        "SLURM_CPUS_PER_TASK": "32",
        "SRUN_LOG": str(tmp_path / "srun.log"),
    }


def test_two_nodes_of_slurm(tmp_path, slurm):
    words = (RECIPE, "--learning_rate", "2e-6", "--max_steps", "10")
    dry = {"DRY_RUN": "1", "OUTPUT": str(tmp_path / "out")}
    shown = run("slurm.sh", *words, gpus=8, folder=tmp_path, **dry, **slurm)
    server, *trainers = commands(shown)
    assert "CUDA_VISIBLE_DEVICES=4,5,6,7" in server and " rollout " in server
    for rank, trainer in enumerate(trainers):
        expected = {
            "NNODES": "2",
            "NODE_RANK": str(rank),
            "MASTER_ADDR": "gpu07",
            "MASTER_PORT": "24567",
            "NPROC_PER_NODE": "4",
        }
        assert expected.items() <= rendezvous_of(trainer).items()
        assert flags(trainer)["learning_rate"] == "2e-6"
    assert len(trainers) == 2
    # The installation, and a task on each node: all with the job's cores.
    tasks = (tmp_path / "srun.log").read_text().splitlines()
    assert tasks == [f"a task with 32 cores on node {node}" for node in (0, 0, 1)]


def test_slurm_needs_the_root_of_the_checkout(tmp_path, slurm):
    shown = run("slurm.sh", folder=tmp_path, **slurm | {"SLURM_SUBMIT_DIR": str(tmp_path)})
    assert shown.returncode == 2 and "in the root of the checkout" in shown.stderr


class Job:
    """slurm.sh in a checkout whose training says how it was started, and waits to be ended."""

    def __init__(self, folder, slurm, training="wait", **variables):
        scripts = folder / "checkout" / "scripts"
        scripts.mkdir(parents=True)
        self.log = folder / "srun.log"
        (scripts / "install.sh").write_text("exit 0\n")
        end = {"wait": "sleep 600 & wait", "fail": "exit 3", "succeed": "exit 0"}[training]
        (scripts / "train_countdown.sh").write_text(
            'trap "kill \\$!; exit 143" TERM\n'
            'echo "training, RESUME=$RESUME" >>"$SRUN_LOG"\n'
            'echo $$ >>"$SRUN_LOG.pids"\n'
            f"{end}\n"
        )
        environment = bare_environment() | slurm | variables
        environment["PATH"] = f"{folder}:{environment['PATH']}"
        environment["SLURM_SUBMIT_DIR"] = str(folder / "checkout")
        environment["SLURM_JOB_NUM_NODES"] = "1"
        self.process = subprocess.Popen(
            ["bash", str(ROOT / "scripts" / "slurm.sh")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def await_training(self) -> None:
        end = time.monotonic() + 600
        pids = self.log.with_name("srun.log.pids")
        while not pids.exists() or not pids.read_text().endswith("\n"):
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.05)

    def result(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=600)
        return self.process.returncode, output

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()


@pytest.fixture
def job(tmp_path, slurm):
    jobs = []

    def start(**options):
        jobs.append(Job(tmp_path, slurm, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.end()


def test_a_job_goes_on_from_its_checkpoint_and_ends_with_the_trainings_status(job):
    started = job(training="fail")
    assert started.result()[0] == 3
    # A training that fails would fail again.
    assert started.log.read_text().splitlines()[1:] == [
        "a task with 32 cores on node 0",
        "training, RESUME=auto",
    ]


def test_a_job_requeues_itself_at_its_time_limit(job):
    started = job()
    started.await_training()
    started.process.send_signal(signal.SIGUSR1)
    status, output = started.result()
    assert "requeued, to resume from the last complete checkpoint" in output
    assert started.log.read_text().splitlines()[-1] == "requeued 1234567"
    assert status == 143


@pytest.mark.parametrize(
    "variables",
    [
        {"SLURM_RESTART_COUNT": "10"},
        {"SLURM_RESTART_COUNT": "2", "REQUEUES": "2"},
        {"REQUEUES": "0"},
    ],
)
def test_a_job_that_was_requeued_often_ends_at_its_time_limit(job, variables):
    started = job(**variables, RESUME="1")
    started.await_training()
    started.process.send_signal(signal.SIGUSR1)
    line = started.process.stdout.readline()
    assert "sbatch it again to resume" in line
    assert started.process.poll() is None, "SLURM ends it; until then it trains"
    assert "requeued 1234567" not in started.log.read_text()
    assert "training, RESUME=1" in started.log.read_text()


def test_what_slurm_is_asked_for():
    text = (ROOT / "scripts" / "slurm.sh").read_text()
    options = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", text, re.MULTILINE))
    # Requeued, its log goes on in the same file; B: only the script is told of the time limit.
    assert options["requeue"] == "" and options["open-mode"] == "append"
    assert options["signal"].startswith("B:USR1@")
    assert options["ntasks-per-node"] == "1"


# Kubernetes.


@pytest.fixture(scope="module")
def pytorch_job():
    documents = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def node_of(job, name="Master"):
    return job["PyTorchJob"]["spec"]["pytorchReplicaSpecs"][name]


OPERATOR = {"MASTER_ADDR": "countdown-master-0", "MASTER_PORT": "23456"}
# What the training operator sets from release 1.7 on, and before.
PET = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "auto", "PET_MASTER_ADDR": "countdown-master-0"}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("release", ["1.7", "1.6"])
def test_a_node_of_kubeflows_pytorch_job(tmp_path, pytorch_job, release, rank):
    (container,) = node_of(pytorch_job)["template"]["spec"]["containers"]
    shell, options, text, name = container["command"]
    assert (shell, options) == ("bash", "-euc")
    variables = OPERATOR | {"RANK": str(rank), "WORLD_SIZE": "2"}
    if release == "1.7":  # there WORLD_SIZE counts processes
        variables |= PET | {"PET_NODE_RANK": str(rank), "WORLD_SIZE": "16"}
    variables |= {entry["name"]: entry["value"] for entry in container["env"]}
    variables |= {"DRY_RUN": "1", "OUTPUT": str(tmp_path / "out")}
    # What remains of the operator's variables in the launcher's environment.
    text = text.replace(
        "exec bash", "env | grep -E '^(PET_|RANK=|WORLD_SIZE=)' && exit 9; exec bash"
    )
    node = tmp_path / "node.sh"
    node.write_text(
        f"cd {shlex.quote(str(ROOT))}\nexec {shell} {options} {shlex.quote(text)} {name} {RECIPE}\n"
    )
    shown = run(str(node), gpus=8, folder=tmp_path, **variables)
    *_, trainer = commands(shown)
    expected = OPERATOR | {"NNODES": "2", "NODE_RANK": str(rank), "NPROC_PER_NODE": "4"}
    assert expected.items() <= rendezvous_of(trainer).items()
    assert (len(commands(shown)) == 2) == (rank == 0), "the first node has the server"


def test_the_pytorch_job_fits_the_image_and_can_be_started_again(pytorch_job):
    master = node_of(pytorch_job)
    assert master == node_of(pytorch_job, "Worker") and master["replicas"] == 1
    assert master["restartPolicy"] == "OnFailure"
    pod = master["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "pytorch", "where the operator sets its variables"
    assert {"name": "RESUME", "value": "auto"} in container["env"]
    assert int(container["resources"]["limits"]["nvidia.com/gpu"]) == 8

    folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume.pop("name"): volume for volume in map(dict, pod["volumes"])}
    assert folders.keys() == volumes.keys()
    image = (ROOT / "scripts" / "Dockerfile").read_text()
    workdir = present(re.search(r"^WORKDIR (\S+)$", image, re.MULTILINE))[1]
    assert folders["output"] == f"{workdir}/output"
    claim = pytorch_job["PersistentVolumeClaim"]
    assert volumes["output"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert folders["shm"] == "/dev/shm" and volumes["shm"]["emptyDir"]["medium"] == "Memory"


# SkyPilot.


@pytest.fixture(scope="module")
def task():
    return yaml.safe_load((CLUSTER / "skypilot.yaml").read_text())


@pytest.mark.parametrize(("rank", "nodes"), [(0, 1), (0, 2), (1, 2)])
def test_a_node_of_skypilots_task(tmp_path, task, rank, nodes):
    addresses = ["10.0.0.1", "10.0.0.2"][:nodes]
    variables = {
        "SKYPILOT_NODE_IPS": "\n".join(addresses),
        "SKYPILOT_NODE_RANK": str(rank),
        "SKYPILOT_NUM_NODES": str(nodes),
        "DRY_RUN": "1",
    }
    variables |= task["envs"]
    variables |= {"OUTPUT": str(tmp_path / "out"), "FLAGS": f"{RECIPE} --learning_rate 2e-6"}
    node = tmp_path / "node.sh"
    node.write_text(f"cd {shlex.quote(str(ROOT))}\n{task['run']}")
    shown = run(str(node), gpus=8, folder=tmp_path, **variables)
    *_, trainer = commands(shown)
    assert flags(trainer)["learning_rate"] == "2e-6"
    set_for_it = rendezvous_of(trainer)
    if nodes > 1:
        expected = {"NNODES": "2", "NODE_RANK": str(rank), "MASTER_ADDR": "10.0.0.1"}
        assert expected.items() <= set_for_it.items()
    assert set_for_it["NPROC_PER_NODE"] == "4"


def test_skypilots_task_goes_on_in_a_folder_that_outlives_the_node(task):
    assert task["envs"]["RESUME"] == "auto"
    (folder, bucket), *others = task["file_mounts"].items()
    assert not others and task["envs"]["OUTPUT"].startswith(f"{folder}/")
    assert bucket["mode"] == "MOUNT_CACHED"
    assert task["setup"].strip() == "bash scripts/install.sh"
    # Names of SkyPilot's task; it refuses others.
    known = {"name", "num_nodes", "workdir", "resources", "envs", "file_mounts", "setup", "run"}
    assert task.keys() <= known
    assert task["resources"].keys() <= {"accelerators", "cpus", "memory", "disk_size"}
