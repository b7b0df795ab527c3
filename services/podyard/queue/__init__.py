"""The queue: which pod is scheduled next, and which event may help a pod that no node takes.

Duty: keep all pending pods, hand them to schedulers, take results in, ask queueing hints on events, and say
for every event what it moved, what not, and why. Never in here: whether a pod fits (the scheduler's and the
binder's), bindings, anything written to `placement.>`.

Reads: pods, nodes, their statuses, nominations, priority classes, namespaces, all resources that a plugin
registered events of, bindings (listed), commit records and the fence (followed); `events.>` (bare events); at
the start of a term `decisions.>`.
Serves, as the leader only: `svc.queue.pop|heartbeat|done|activate|preempting` (schedulers),
`svc.queue.list|would` (people).
Writes: `cluster.nominations.>`, `requeues.>`, `decisions.>` (gated pods, attempts that it ended itself; and
purges those of removed pods), `leases.queue`, `dead.queue`.

State: in memory. What survives a restart: nominations (facts), counts and backoff of pods whose last attempt
did not bind (from their last record). A new leader puts every pending pod into activeQ, or the backoff that
its last attempt left it, unless a PreEnqueue plugin gates it: one more attempt each, no lost wake-up.

- `core`          the queue and its protocol, pure
- `settings`      what can be set
- `assembly`      profiles to a core
- `term`          one term as leader: feeds the core and carries out what it wants
- `endpoints`     requests of schedulers and people
- `bare_events`   events for experiments, as the core is told of them
- `earlier`       what earlier leaders wrote: last records, nominations
- `accounts`      what is told of what the queue did: records, counts, traces, log lines
- `records`       effects as the records that are stored
- `nominations`   nomination facts by compare-and-set
- `instruments`   metrics; `reference_metrics` those of kube-scheduler
- `debug`         what it shows of itself
- `attempt_spans` traces of attempts
- `service`       puts it all together
"""
