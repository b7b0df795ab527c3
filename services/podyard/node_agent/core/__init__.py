"""What the agent decides, without doing it: one message and `now` in, effects out.

Duty: the life of each pod on the agent's nodes, the nodes' conditions, evictions.
Never in here: await, clocks, the bus, logs, telemetry.

- `agent`         all of it: what a driver steps
- `messages`      what it is told
- `effects`       what a shell carries out
- `selection`     which nodes are the agent's
- `claims`        which of them it may play: two agents never play one
- `pods`, `virtual_pod`, `timers`  the pods' lives
- `admission`, `preemption`  whether a node takes a pod, and who goes for a critical one
- `resizing`      pods that are asked to have something else while they run
- `containers`    the lives of a pod's containers
- `programs`      what of a pod can run as processes of a host
- `real_pod`      pods that do
- `annotations`   what a pod's annotations ask of its virtual containers
- `nodes`, `virtual_node`  nodes: pressure, heartbeats, the eviction loop
- `node_config`  how a node is set up, by its labels
- `images`, `image_rounds`  which images of a node are collected, and when it does so by itself
- `host_node`     the node that is the host itself, whose rounds wait for answers
- `registering`   what a host's object says
- `readings`      from synthetic signals to what the eviction manager reads
- `preview`, `levels`  whom a node would evict, with signals as people give them
- `pod_facts`, `node_facts`           how facts are worded
- `eviction/`     the eviction manager
"""
