"""What the cluster looks like to one reader, and what is to become of its objects: shared by all services.
Pure.

Duty: fold the deliveries of the CLUSTER stream into one joined view of pods, nodes and other objects; say for
every change which cluster events of kube-scheduler it is; decide what is written when an object is created,
changed, deleted or evicted.
Never in here: await, clocks, the bus, telemetry, scheduling decisions, plugins, admission rules, subjects
spelled by hand. What feeds a view and carries out an intent is in `podyard.shell`.

- `keys`         names of objects
- `classify`     from an old and a new object to cluster events, as kube-scheduler v1.36
- `changes`      Change: what a delivery did to a view; effects that a fold asks its shell for
- `conditions`, `pods`, `nodes`  joined views of one pod and one node
- `container_statuses`  what an agent says of a pod's containers, joined
- `markers`, `tables`  what is behind a view
- `relisting`    what changed between two listings
- `fold`         what both folds keep: how far they have come, what they ask their shell for
- `view`         ClusterView: the fold itself
- `read_log`     which messages were read lately
- `documents`    DocumentView: raw documents with their sequences, for those who write objects
- `budgets`      what disruption budgets allow
- `quota_charges`  what an object takes of the quotas of its namespace, and whether that is too much
- `disruption`   deleting a pod for the sake of another, and saying so on it
- `errors`
- `finalizing`   what keeps a deleted object, and what becomes of its dependents
- `intents`      what is to become of an object, decided from what is stored
- `node_table`   columns over nodes for scheduler and binder: `node_columns` their parts, `room` what nodes
  have and pods take, `pod_columns` placed pods, `selector_counts` and `domain_sums` how many a selector
  matches
- `dumping`, `comparing`  what a reader holds, as rows, and whether it is what the stream says
- `usages`       what agents say that nodes, pods and containers use
- `nominations`  pods that wait for room on a node they preempted for
"""
