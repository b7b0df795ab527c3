"""Benchmarks: the services as processes, measured from outside.

Duty: play a load through the public doors, count what was durably done, and say what it cost; or time one core in this process. Never in
here: a figure that is not measured in the run that prints it.

- `load`     pods and nodes to create, and creating them at the pace of the api
- `meters`   CPU seconds of processes, messages through the NATS server
- `commits`  follows the commit records until all pods are bound
- `basic`    plain pods on plain nodes
- `cluster`  a cluster in memory, with pods of five kinds
- `cycles`   what one scheduling cycle costs, by kind of pod and size of the cluster
"""
