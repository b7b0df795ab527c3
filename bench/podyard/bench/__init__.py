"""Benchmarks: the services as processes, measured from outside. A checkout has them, the wheel has not.

Duty: play a load through the public doors, count what was durably done, and say what it cost; or time one
core in this process. Never in here: a figure that is not measured in the run that prints it. Nothing of the
product imports this package but `podyard bench`, which finds it by its name; tests share `programs` and
`checking`.

- `load`     pods and nodes to create, and creating them at the pace of the api
- `meters`   CPU seconds of processes, messages through the NATS server
- `collector`  takes spans and keeps none, in a process of its own
- `commits`  follows the commit records until all pods are bound
- `versions` objects as the benches store them, without an api
- `basic`    plain pods on plain nodes
- `cluster`  a cluster in memory, with pods of five kinds
- `cycles`   what one scheduling cycle costs, by kind of pod and size of the cluster
- `drifted`  a cluster in memory that gives every plugin of the descheduler something to do
- `deschedule`  what one cycle of the descheduler costs, with each plugin's share
- `agent`    what one process costs that plays thousands of nodes
- `kube`     what lists, watches and pages of the Kubernetes API cost
- `parked`   pods of many shapes, each with the plugins that rejected it
- `leading`  the core of a queue that leads, full of them
- `event_kinds`, `events`  what an event costs that core, by kind
- `storm`    how long pops take while a thousand nodes a second change
- `machine`  what a measurement was made on, and of which commit
- `counted`  counts that the tests made of the same commit
- `contention`  several schedulers fill a cluster; `mixed` its nodes and pods, `tally` counters of processes
  that are killed, `end_state` what it has left
- `growth`   what processes take in memory while `churn` plays changes
- `performance`, `history`, `keeping`  one entry of all these, the file of all entries, and adding one
- `comparing`  what a change between two entries is worth
- `checking`   the checker: what is wrong with a history of CLUSTER
- `scheduler_perf/`  kube-scheduler's own benchmark files
- `compare`    kube-scheduler's own benchmark, with kube-scheduler and with Podyard in turn
- `replay`     recorded workloads, played again
- `programs`   programs of others, built once each and kept
- `pictures`   which files a picture may be drawn into, and what may go wrong
- `commands/`  what people type
- `render/`    pure: data in, rich renderables and pictures out
"""
