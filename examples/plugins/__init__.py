"""Plugins as a user writes them: one file each, enabled in a KubeSchedulerConfiguration as
`package.module:Class`.

- `busy_nodes`               the shortest: a filter in 20 lines, with its event and a test;
                             docs/write-a-plugin.md begins with it
- `gpu_packing`              a score with arguments: fill nodes that have GPUs in use
- `data_locality`            a filter and a score on a custom resource
- `node_resource_topology`   a filter one node at a time: does the pod fit into one NUMA zone?
"""
