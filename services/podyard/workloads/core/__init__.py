"""The pure core of workloads: which objects to look at, and what to write for them.

Never in here: await, clocks, logs, the bus, telemetry; randomness but that which is handed in.

- `actions`       what the core is told and what it wants done
- `controller`    which keys to look at and when; own writes are seen before the next look
- `syncing`       one look at one key
- `receipts`      when we heard of what another's clock puts into the future
- `looking`       what a look finds, and what it may look at
- `replica_sets` (and ReplicationControllers), `deployments` (with the arithmetic of `rollout`),
  `daemon_sets`, `stateful_sets` (with `claim_retention`), `jobs`, `cron_jobs`, `budgets`, `volumes`  one
  controller each
- `revisions`     which templates a DaemonSet or StatefulSet has had
- `backoffs`      how long a node waits for the next pod in place of one that failed
- `budget_index`  which budgets select a pod, and which pods a budget
- `quotas`        what is used of resource quotas
- `ended_pods`    how many ended pods are kept, and which go
- `waits`         how long to wait after failures in a row
- `scale_down`    which pods go first
- `templates`     pods made from templates
- `ownership`     owners and dependents
- `adoption`      ReplicaSets that Deployments take over
- `garbage`       what is collected with or after its owners, or set free
- `namespaces`    what goes with a namespace
- `pods`          whether a pod counts, is ready, since when
- `census`        a state machine of its own: when a census is taken, and what came back is deleted
- `node_life`     a state machine of its own: which nodes are lost, and what is said of them
- `zones`         how fast nodes are given up; `taint_eviction`  which pods end by taints, and when
- `documents`     small changes of raw documents
"""
