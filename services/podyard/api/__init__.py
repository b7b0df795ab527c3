"""The door for people and bridges: admits, writes, deletes and evicts objects. Any number of instances in one
queue group.

Duty: answer `svc.objects.apply`, `svc.objects.delete` and `svc.objects.evict`, up to 256 objects a request;
all objects of a request are checked before any is written; every write is a compare-and-set. The same for
`svc.objects.apply.<node>`, by which an agent writes that node's object and nothing else. To people
`svc.objects.reveal` shows what Secrets hold, which are stored encrypted with a key that only the api has.
Never in here: scheduling, owners and dependents (workloads collects them), placements, statuses.

Reads: `cluster.*.*.*` (objects), `placement.bindings.>`, `placement.commits.>`, `placement.fence` (which pods
take room); for an eviction, each time anew, the pod with its placement and status and the budgets of its
namespace. Writes:
`cluster.<resource>.<namespace>.<name>` (objects, deletion timestamps, markers, the status of a charged
budget), `dead.api`. State: a copy of all objects that something here goes by, of the others where they stand,
to look things up in; but for the key nothing survives a restart, and
nothing needs to. An instance sees its own writes at once, those of others when they arrive; a compare-and-set
that lost is decided again from the newer version.
"""
