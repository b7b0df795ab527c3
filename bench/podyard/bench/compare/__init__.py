"""kube-scheduler's own benchmark, with kube-scheduler and with Podyard in turn.

Duty: run the workloads of kube-scheduler's benchmark on both sides from the same files, keep what each run
was found to be, and say what it comes to. Never in here: a figure that differs in what it means between the
sides.

- `rows`, `sides`  what is compared, and with what goal
- `workloads`      the files that both sides read
- `figures`        what one run was found to be; `outcome` what a side hands back
- `reference_run`  a run of the reference: `data_items`, `reference_log` and `reference_changes` read what it
  writes, `sampling` looks at its processes
- `elsewhere`      what of the machine others had meanwhile
- `podyard_run`    a run of Podyard
- `run_files`      the result files; `running` makes the runs that have none
- `summary`        medians and ratios
"""
