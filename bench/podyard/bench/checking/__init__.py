"""The checker: what is wrong with a history of CLUSTER, by rules that stand here once more.

Duty: judge what was stored, message by message. The simulation and the fault tests hand it every message as
it is stored, benchmarks what a stream still holds after a run. Never in here: code of the binder or of the
framework, of which it is to find the faults.

- `history`        which objects there were at which position
- `selecting`      what pods say of other objects: selectors, tolerations, claims
- `standing`       who is on which node
- `rules`          may this pod be on that node?
- `storage_rules`  the same as to its volumes, and who holds which volume
- `checker`        bindings, releases, records and the fence, and the rules for each binding
- `holding`        what a stream still holds, read for the checker
"""
