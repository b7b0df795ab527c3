"""What the cluster looks like to one reader, and how objects are written: shared by all services.

Duty: fold the deliveries of the CLUSTER stream into one joined view of pods, nodes and other objects; say for every change
which cluster events of kube-scheduler it is; write, delete and evict objects by compare-and-set.
Never in here: scheduling decisions, plugins, admission rules, subjects spelled by hand, NATS.

Pure (no await, clock, bus, telemetry):

- `keys`         names of objects
- `classify`     from an old and a new object to cluster events, as kube-scheduler v1.36
- `changes`      Change: what a delivery did to a view; effects that a fold asks its shell for
- `conditions`, `pods`, `nodes`  joined views of one pod and one node
- `markers`, `tables`  what is behind a view
- `relisting`    what changed between two listings
- `view`         ClusterView: the fold itself
- `documents`    DocumentView: raw documents with their sequences, for those who write objects
- `budgets`      what disruption budgets allow
- `disruption`   deleting a pod for the sake of another, and saying so on it
- `errors`, `timestamps`
- `intents`      what is to become of an object, decided from what is stored
- `node_table`   columns over nodes for scheduler and binder

Shells:

- `informer`     keeps a view up to date from the bus
- `set_aside`    stored messages that views see without their payload
- `snapshot`     a view of one moment
- `writes`       create, update, mark as deleting, remove
- `eviction`     evict pods through their budgets
"""
