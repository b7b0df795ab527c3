"""What the descheduler decides, without doing it. Source: sigs.k8s.io/descheduler v0.36.0.

Duty: read a policy, judge pods, say when a cycle is due, run it. A cycle is a generator: it yields each
eviction it wants, and is told what became of it.
Never in here: await, clocks (a cycle gets `now`), the bus, logs, telemetry.

- `descheduler`   one term: `step(message, now) -> effects`
- `messages`      what it is told
- `effects`       what it wants done
- `policy`        the policy file as Structs
- `loading`       from text to a policy: decode, validate, default; `durations` Go's
- `writing`       from a policy to text's document
- `errors`        what can be wrong with a policy; `metrics_providers` with what it says of those
- `doubtful`      what a policy says that cannot be meant so
- `building`      from a policy to profiles with plugins
- `arguments`     what arguments of plugins share: namespaces, priority threshold, selectors
- `state`         the cluster as one cycle sees it; `measured` what is really used, as others measured it
- `columns`       its nodes, asked all at once; `labelled` pods by label, `anti_affinity` who keeps whom away
- `protections`, `node_fit`, `evictor_args`   which pods may go: the plugin DefaultEvictor
- `candidates`    which pods a plugin looks at; `ordering` in which order
- `ages`, `container_states`   how old, and in which state
- `tolerations`   which taints a pod tolerates, as the descheduler sees it
- `utilization`   from nodes that are used too much, or too little, to others; `usage` of nodes and pods
- `queries`       what is asked of Prometheus before a cycle; `node_usage` what agents have told
- `limits`        how many may go
- `moves`         what was moved, and what came of it
- `framework`     what a plugin is, and what it is given
- `plugins/`      the plugins, `registry` lists them; `own_plugins` are those of the user
- `triggers`      which plugins cluster events concern; `event_hints` what of them matters
- `cycle`         one cycle over all profiles; `evictions` what it asks for, and is answered
- `planning`      where what comes in the place of each pod would go; `spread` how evenly that is
- `restraint`     whom earlier moves say to leave alone
- `advice`        what both come to, for each pod
"""
