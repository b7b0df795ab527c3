"""The eviction manager of one node: when it is under pressure, and which pod goes.

Duty: decide as the kubelet's eviction manager does (v1.36.2, pkg/kubelet/eviction). The data in
tests/conformance/data/{thresholds,rank,synchronize} hold its answers. Never in here: the clock (answers
say when they are), I/O, ending a pod (a decision says which and how; the agent does it).

- `signals`     the eviction signals: resource, node condition, unit
- `amounts`     exact amounts, and how they are printed
- `thresholds`  the eviction configuration, parsed
- `configuration`  the fields of a KubeletConfiguration, as the kubelet reads them
- `allocatable`  what of a registered node's capacity is for pods
- `unused`      what of them has no effect on virtual nodes
- `file_systems`  where images and writable layers live, and what follows from it
- `stats`       observations of the node, usage of the pods
- `requests`    what a pod requests, as the eviction manager counts it
- `ranking`     the order in which pods go
- `critical`    pods that never go, and quality of service
- `messages`    what the evicted pod is told
- `local_storage`  pods that use more of it than they may
- `dialogue`    what a round asks, and what it may be told
- `manager`     the rounds
- `admission`   which new pods a node under pressure refuses
"""
