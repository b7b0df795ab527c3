"""NodeName: a pod that names its node goes nowhere else."""
