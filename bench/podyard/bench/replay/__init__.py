"""A recorded workload, played again against Podyard: the pods of a trace, created and deleted when they were.

Duty: read a recording strictly, play it faster, and say how full nodes were, what of their free GPUs nobody
could use, and how long pods waited. Never in here: a pod or a node that the recording does not have.

- `rows`           a recording, whatever format it came in
- `openb`          reads the format of the openb data set
- `plan`           what is created and deleted when
- `objects`        nodes and pods as Kubernetes has them
- `fragmentation`  the GPUs of nodes as devices, and what of them a workload cannot use
- `curves`         what happened, folded into curves
- `waits`          waiting times in figures
- `playing`        the plan, done on a bus
- `running`        a lab for one replay
- `result`         replays, as they are shown
"""
