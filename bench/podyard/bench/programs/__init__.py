"""Programs of others, built once each and kept: for benchmarks, which compare with them, and for tests.

Duty: find a program, or build it with the Go tool chain out of the Go module proxy, and keep it. Never in
here: running one.

- `kept`         where things are kept, under names made of their content
- `go_programs`  finding or building one program
- `kubernetes`   kubectl, a control plane's programs, and etcd
- `scheduler_perf`  the benchmark of kube-scheduler
"""
