"""All steps, the cheapest and most telling first, so that an hour that is cut short proves most."""

from gpu_check import faults, packages, sampling, times, trainings, weights
from gpu_check.steps import Step

AS_IT_IS, *OTHER_TIMES = times.STEPS
STEPS: tuple[Step, ...] = (
    *packages.STEPS,
    weights.WEIGHTS,
    sampling.VLLM,
    weights.LOST,
    sampling.QUICKSTART,
    trainings.RESUME,
    weights.COLOCATE,
    weights.LORA,
    faults.KILL,
    faults.TERMINATE,
    trainings.FULL_LENGTH,
    AS_IT_IS,
    weights.LOST_LORA,
    *OTHER_TIMES,
)
