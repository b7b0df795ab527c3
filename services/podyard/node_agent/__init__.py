"""The agent of nodes: one process plays the kubelet of thousands of virtual nodes, or of its own host.

Duty: pods bound to its nodes start, run and end; it says so in facts, keeps its nodes' conditions, and evicts
under pressure as the kubelet does. Never in here: choosing a node, releasing a binding (the binder does, on
the fact that a pod has ended), changing a pod's object, deleting anything but its own facts.

Which nodes: every Node, unless it carries the annotation `podyard.io/agent: external` (an agent of its own,
such as a bridge to a real kubelet, reports about it), narrowed by the settings `nodes` (names) and
`node_selector` (labels). The default is "all" because a node that nobody plays would take pods and never
start them: an opt-in label, once forgotten, is a cluster that hangs. A node that another agent plays is left
to it until that one is silent, or people say otherwise (docs/rules.md, two-agents-never-play-one-node).
One of its nodes may be the machine that it runs on (`host_node`): its pressure is real (docs/real-host.md).

Reads: `cluster.pods.>`, `cluster.nodes.>`, `placement.bindings.>` then `placement.commits.>`,
`placement.fence`; at the start its own earlier facts `cluster.podstatus.>` and `cluster.nodestatus.>`;
`signals.>` (synthetic usage, from people); `heartbeat.<node>` of nodes that other agents play; requests on
`svc.agents.<node>.preview`.

Writes: `cluster.podstatus.<node>.>`, `cluster.nodestatus.<node>` (compare-and-set), `heartbeat.<node>`,
`usage.<node>`, `k8sevents.>`, `dead.node_agent`, its lease `leases.node_agent` (with `nodes` or
`node_selector` one of its own). Its host's object it writes by `svc.objects.apply.<node>`; deleted pods that
have ended and are still there it has removed by `svc.objects.delete.<node>`.

State: what each pod does and when its next step is due; observations of each node. It lives in memory. After
a restart it goes on from its stored facts: a pod that ran runs on, since the same moment; a pod that had not
started starts when it would have; conditions under pressure stay for a transition period. Synthetic signals
are not stored: a restarted agent sees its nodes idle.

Modules: `core` decides; `service` leads, `term` feeds the core and carries out its effects, `agent_view` is
what the core is fed from, `previews` answers people, `listening` hears other agents, `fact_writer` stores
facts, `removing` asks for the end of objects, `host_link` and `process_link` bring the core and its host
together, `host` is what can be read and done there, `spans_and_events` and `instruments` show what it does
(`reference_metrics` in the kubelet's words), `settings` says what can be set, `in_force` what came of it.
"""
