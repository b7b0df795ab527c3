"""The scheduler: takes pods from the queue, finds nodes for them, has the binder bind them.

Duty: follow the cluster, run scheduling cycles, hand decisions over and say how every attempt ended.
Never in here: a durable write of placements or nominations (the binder's, the queue's), the judgement of
plugins (`podyard.plugins`).

Reads: the objects that queue and binder follow (`proto.subjects.FOLLOWED_BY_QUEUE_AND_SCHEDULER` and what the
plugins registered), `placement.bindings.>`, `placement.commits.>`, `placement.fence`; asks
`svc.queue.pop|done|heartbeat|preempting` and `svc.binder.bind`. Answers `svc.scheduler.would` (people).
Writes: `decisions.<ns>.<pod>.<uid>` for attempts that did not bind; `cluster.pods.<ns>.<pod>` of pods that it
preempts (their deletion); `k8sevents.<ns>.Pod.<pod>`; `dead.scheduler`.
Keeps: the view, the node table, assumptions, open attempts; all in memory. Nothing survives a restart: the
queue takes back the attempts of a session that says that it is over, or was silent for 10 s; bindings that
were asked for are settled by the pod's own binding.

- `service`      main, and the definition for `podyard run scheduler`
- `settings`     what can be set
- `term`         one term: a core with its view and its links
- `engine`       runs the core and carries its effects out
- `pace`         how many pods to schedule in one go
- `window`       how many decisions may be with the binder at once
- `outbox`       what waits to be sent by the links
- `queue_link`   pops, results, heartbeats, the session
- `bind_link`    decisions to the binder
- `questions`    where a pod would go, for people who ask
- `preemption_link`  preemptions: the queue, the victims
- `attempt_records`  records of attempts that did not bind
- `cycle_spans`, `victim_traces`, `instruments`  traces and metrics; `reference_metrics` those of
  kube-scheduler
- `debug`  what it shows of itself
- `core`         the scheduler as pure code
"""
