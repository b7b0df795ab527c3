"""The binder's pure core: judges decisions and says what to write, in which order, and what an answer means.

Duty: one binding a pod uid, for ever; no decision over what the node has, by the profile's rule; nothing
written or said by a deposed binder; every unclear write settled by the fence. Never in here: await, clocks,
logs, the bus, telemetry.

- `effects`      what the core is told and what it wants done
- `fence`        who may write, and what became of a send
- `world`        view, node table and own writes: what is judged by
- `pending`      one decision without an answer: its states, and what may happen to it
- `intake`       pending decisions, and answers to repetitions
- `ahead`        decisions that wait for the view to reach their position
- `node_takes_pod`  is the pod there to be bound, does the node take it
- `verdicts`     what is to become of a pending decision
- `skipping`     when the filters need not be asked again: what came after which position
- `claims`       which decisions a decision counted on
- `points`       PreBind, Bind, PostBind
- `batch`        a commit and its messages
- `waiting`      decisions of which a PreBind plugin waits
- `gathering`    does what the verdicts say: builds a batch, takes one apart that was not written
- `inspection`   why a commit's compare-and-set failed
- `blocking`     placements that cannot be read
- `releases`     ends of bindings, tombstones
- `forced`       pods created with a node name
- `holding`      what waits in it and what it counts, for people
- `usage_check`  the table against the sum of the bindings
- `binder`       the state machine over all of them
"""
