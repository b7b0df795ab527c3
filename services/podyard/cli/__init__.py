"""The command line: `podyard up | run | apply | delete | get | publish | watch | explain | queue | ...`.

Duty: what people type, what they read, and starting the services; the only layer that starts them. Never in
here: state of the cluster that is not read from the bus, writes other than through `svc.objects.>` and the
plain subjects made for people (`events.>`, `signals.>`), decisions. `podyard deschedule` runs a term of the
descheduler in its process: what that writes it writes as the descheduler. `podyard restore` makes streams.

Subjects read: CLUSTER, DECISIONS, REQUEUES, K8SEVENTS, DEAD by watches; `svc.queue.list` and `$SRV.PING` by
requests. Subjects written: requests to `svc.objects.apply|delete|reveal`; `events.<resource>.<action>`,
`signals.<node>`. State kept: while `podyard up` runs, one file in the state directory (`lab.state`) with the
NATS URL and process ids. What survives a restart: with `up --data DIR` the streams in DIR; otherwise nothing.

- `app`, `options`, `errors`   the command table, options that commands share, errors with advice
- `commands/`                  one module a command; it imports inside what is heavy
- `services`                   which services there are
- `reference_flags`            flags of kube-scheduler and the descheduler, and what each means here
- `written_configuration`      `--write-config-to`
- `serving`                    one service in this process, with as few imports as it takes
- `session`                    a connection for one command
- `targets`, `selection`, `files`   what a command means: kinds and names, a label selector, files
- `defined_kinds`              custom kinds by the names of their stored definitions
- `objects_client`             requests to `svc.objects.>`, in pieces, repeated
- `stored_objects`             objects of some kinds with their documents, read once or followed
- `kubectl_plugin`             the same command line as a plugin of kubectl
- `completing`                 what may stand next on a command line, for shells
- `getting`, `getting_events`, `watching`, `mending`   what `get`, `get events`, `watch` and `mend` do
- `pod_evidence`               when pods were bound, and why they are not: for whole pods
- `watch_output`               what `watch` prints of what happens: lines, or counts
- `backing_up`                 what `backup` and `restore` do
- `descheduling`               a cycle of the descheduler in this process, for `deschedule`
- `checks_page`                what to do when a check is red
- `configuration_files`        a file that services run by, of any kind; `scheduler_configuration` of one
- `lab/`                       `up`: the embedded server, the supervised services, the state file
- `scenario/`                  files of timed events and objects: format, checks, player
- `explain/`                   a pod's story from decisions, requeues and placement, as data
- `security/`                  identities, keys, certificates and NATS servers' configuration
- `top/`                       figures from the services' metrics
- `jaeger/`                    traces as Jaeger's query API tells them
- `demo/`                      a story in ten steps
- `render/`                    pure: data in, rich renderables out
"""
