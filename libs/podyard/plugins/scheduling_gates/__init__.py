"""SchedulingGates keeps a pod out of the queue while it has scheduling gates.

`plugin` is the PreEnqueue rule, `hints` what opens it. Never in here: who removes gates (their owners do).
"""
