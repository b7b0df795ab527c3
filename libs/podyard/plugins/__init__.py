"""The scheduler's plugins, one folder each: `plugin.py` with the rules, `args.py` if it has arguments,
`hints.py` with what wakes the pods it rejected. `registry.py` lists them, `defaults.py` makes the default
profile.

What several of them use stands beside the folders:

- `node_matching`   node selectors on all nodes at once
- `hinted`          the changed object of an event as the kind that a hint expects
- `hint_indexes`    which parked pods an event can help at all
- `claim_index`     the same, by the claims that a pod names
- `pod_keys`        keys by which label selectors and pods find each other
- `claim_added`     the hint about a new claim
- `taint_events`    what may help a pod that taints keep out

What makes profiles of them:

- `in_tree`         the default plugins as the reference has them: order, weights, extension points
- `profiles`        from plugins and what a profile says of them to the profile that is run
- `loading`         plugins of the user
- `class_paths`     where a name like `package.module:Class` leads; `signatures` whether a class is a plugin

Duty: decide as the plugin of the same name of kube-scheduler v1.36.2 does, on all nodes at once and on one
node alike.
Never in here: I/O, clocks, telemetry, state that outlives a call (what a plugin remembers is in the
CycleState).
"""
