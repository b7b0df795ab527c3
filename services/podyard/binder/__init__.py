"""The binder: judges each decision once more, in one order, and makes it durable, or says why not.

Duty: bindings and their ends, in atomic batches behind a fence; pods created with a node name; tombstones.
Never in here: choosing nodes, retrying pods, changing objects (but what PreBind plugins ask to be
written).

- reads: `cluster.>` as the plugins need it, `cluster.podstatus.>`, `placement.>`; requests on
  `svc.binder.bind` (only the leader listens)
- writes: `placement.bindings.>`, `placement.commits.>`, `placement.fence`, `leases.binder`, `dead.binder`;
  volumes and claims that PreBind plugins want written, with a binding or before it
- state: the view, the node table and decisions in hand, in memory; the truth is in `placement.>`
- after a restart: moves the fence, lists everything, serves; schedulers ask again with the same attempt ids

Modules: `core` decides; `service` leads, `term` feeds the core and carries out its effects through `writer`,
`reading` is the view that is read, `instruments` counts, `bind_spans` traces, `debug` shows what it holds,
`settings` says what can be set.
"""
