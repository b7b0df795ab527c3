"""Files of timed events and objects: `podyard publish --scenario FILE`.

    scenario: taint-and-untaint
    description: a node loses its taint, the pod that waits for it is retried
    steps:
      - name: two nodes join
        apply: [{file: nodes.yaml}]           # files beside this one, or objects in place
      - wait: {nodes: role=worker, are: Ready, count: 2, within: 20s}
      - at: 5s                                # since the start; `after: 2s` is since the step before
        patch: {object: node/node-2, with: {spec: {taints: []}}}
      - repeat: 100                           # ${n} counts from 1
        rate: 50                              # a second
        steps:
          - publish: {event: Node/UpdateNodeTaint}
      - signals: {node: node-1, memory.available: 100Mi of 8Gi, pods: {default/web: 7Gi}}
      - signals: {node: node-1, pods: {default/web: {memory: {leak: 50Mi, to: 7Gi}}}}
      - signals: {node: node-1, failing: {kill: no runtime}}   # layout, reading, containers, images, kill
      - delete: [pod/web]

A step has one action (`apply`, `delete`, `patch`, `publish`, `signals`, `wait`, `repeat`), optional `name`,
`at` or `after`. The file is checked as a whole, with all faults told at once, before anything is done.

- `model`   the steps as data
- `load`    from text to steps; `actions` reads one action, `signals` that of a node's usage, `shapes` how it
  goes on; `faults` gathers what is wrong
- `play`    doing the steps on the bus; `waiting` is when a `wait` holds
"""
