"""The descheduler: evicts pods that would be placed elsewhere today.

Duty: take a DeschedulerPolicy (descheduler/v1alpha2) as it is, and in every cycle evict what its plugins
choose, within its limits and through the disruption budgets; say where they would go, by the scheduling
profiles. Never in here: choosing a new node (the scheduler does), creating the replacement (workloads does).

Reads: at the start of a cycle everything that `podyard.shell.snapshot` lists: objects, pod and node statuses,
bindings, fence; MOVES when a term begins; what its policy has Prometheus asked, and `usage.*` if it wants
that; of an eviction that was not answered, the pod. Asks: `svc.objects.evict`, for each eviction. Writes:
`moves.>`, `k8sevents.>`, `dead.descheduler`, its lease `leases.descheduler`.

State: between cycles only what was moved, which MOVES keeps; a restart begins with the next cycle. The policy
file is read at the start.
"""
