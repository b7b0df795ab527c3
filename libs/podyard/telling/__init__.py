"""What people are told: from objects and facts to values that a terminal, a file or a program shows as it
likes.

Duty: the tables of `get`, as kubectl prints them, and the explanation of a pod, a workload and a node.
Never in here: a terminal, colours, columns' widths, the bus, a clock (callers pass `now`).

- `tables`        headers and rows of each kind of object; `cells` their cells, `pod_cells` those of a pod,
  `node_room` how full a node is
- `objects`       stored objects, joined with what others say of them
- `pod_conditions`  whether a pod is scheduled, as a condition of it
- `listing`       what `get` says of those: rows, documents, what cannot be read; `names` how kubectl calls
  objects
- `evidence`      which of the records under a pod's name are about one pod
- `explanation`   that pod's story, made of `entries`; `queued` why the queue keeps it where it is
- `advice`        what would help a pod that waits; `waiting` pods that wait for the same, together
- `workload`      how the pods of a workload are
- `node_story`    what is on a node, and why waiting pods do not go there; `node_fit` what pod and node alone
  decide of it
- `moves`         what the descheduler moved of a workload or a pod
- `events`        events that nobody sends, out of what is stored; `event_facts` gathers that, `event_listing`
  is what `get events` says
- `words`         values of enumerations as people read them
"""
