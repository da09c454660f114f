"""All steps, the cheapest and most telling first, so that an hour that is cut short proves most."""

from gpu_check import faults, times, trainings, weights
from gpu_check.steps import Step

AS_IT_IS, *OTHER_TIMES = times.STEPS
STEPS: tuple[Step, ...] = (
    weights.WEIGHTS,
    weights.LOST,
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
