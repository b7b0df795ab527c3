"""The scheduler's plugins, one folder each: `plugin.py` with the rules, `args.py` if it has arguments, `hints.py` with what wakes the
pods it rejected. `registry.py` lists them, `defaults.py` makes the default profile.

Duty: decide as the plugin of the same name of kube-scheduler v1.36.2 does, on all nodes at once and on one node alike.
Never in here: I/O, clocks, telemetry, state that outlives a call (what a plugin remembers is in the CycleState).
"""
