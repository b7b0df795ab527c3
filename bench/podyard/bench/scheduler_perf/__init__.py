"""kube-scheduler's own benchmark files, run as they are against Podyard.

Duty: read them, do what their ops say on a bus, and measure by the reference's definitions. Never in here: a
workload of our own, or a field of a file that is accepted and does nothing.

- `config`      the file: cases, workloads, ops
- `gates`       feature gates that a workload may name
- `templates`   the Go templates in the files of objects
- `planning`    the ops of one workload with its parameters filled in
- `documents`   the objects that an op creates
- `figures`     throughput, percentiles and histograms
- `moulds`      admitted objects as messages, many of one shape
- `written`     what was made so far; `rehearsing` tries a plan on it, without a bus
- `cluster`     writing it; `through_api`: by the api
- `following`   commits as they come
- `histograms`  what services tell of their times
- `executing`   the ops, done on a bus
- `measuring`   meters around the part that is measured
- `stacks`      a stack that is started, or one that runs; `running`: one workload on it
- `capacity`    which service is full at which rate
- `result`      one run, as it is shown; `kept`: in a file

Source of what each op does: kubernetes v1.36.2, test/integration/scheduler_perf.
"""
