"""Launches training with ms-swift: what will run where, whether it can, and a supervisor that
watches it.

From the command to the running programs it is three hops: `choose` finds the recipe that the words
mean, `plan` makes the commands of it, `supervisor` starts and watches them. `estimate` and the
checks of `doctor` read a plan and change nothing. Each module imports only those before it: machine,
nvml, settings, variables, gpus, servers, commands, additions, plan, model_size, memory, estimate,
choose, parse_arguments, checks, doctor, show; progress, processes, report, stale_weights,
supervisor, logged.
"""
