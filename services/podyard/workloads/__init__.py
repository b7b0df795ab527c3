"""The small part of the controller manager that closes the loop: what was evicted is made again, what has
ended goes.

Duty: ReplicaSet, ReplicationController, Deployment, DaemonSet, StatefulSet, Job and CronJob; status of
disruption budgets; what is used of resource quotas; background garbage collection by owner references; the
markers of pods that are being deleted and hold no room any more, or whose node is gone; volumes of claims
that wait for no pod, and of classes whose provisioner is simulated; which nodes are lost, and the end of pods
by taints; the census of CLUSTER, and the deletion of what a killed server brought back.
Never in here: choosing nodes, bindings, what agents say of pods and nodes. It adopts no pods: one without a
controller stays without. Deployments adopt ReplicaSets.

- reads: `cluster.>` (objects, pod and node statuses), `placement.>`; for the census all of CLUSTER;
  `heartbeat.*`
- writes: pods, ReplicaSets, Jobs, ControllerRevisions, status of workloads and budgets, volumes and claims,
  deletion markers; `cluster.nodelife.<node>`; `cluster.quotausage.<ns>.<name>.<uid>`; `cluster.census`;
  `leases.workloads`, `k8sevents.>`, `dead.workloads`
- state: the view, in memory; what it decides by is all in the objects
- after a restart: lists everything and compares again; creations under way are seen in the listing. Should
  those of a leader that was paused arrive later still, the surplus is deleted again. The silence of nodes,
  and for how long taints were tolerated, is counted anew.

Modules: `core` decides; `service` leads, `term` feeds the core, `reading` is what the core is fed from,
`writer` carries out its effects, `events` words what people are told of that, `sync_spans` traces it,
`census` is the shell of a second core, the census taker, `node_life` that of a third; `instruments` counts,
`settings` says what can be set.
"""
