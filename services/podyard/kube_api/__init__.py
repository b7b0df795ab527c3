"""The Kubernetes API on the bus: kubectl, helm, client libraries and other people's controllers work with it
as with the API server's.

Any number of instances. Each answers from a view of its own that follows the streams (objects joined with
what bindings, agents and others say of them); whatever is written goes through `svc.objects`, so that the api
alone admits. Events alone it stores itself.

Subjects read: CLUSTER, DECISIONS, K8SEVENTS; `usage.*`. Written: `svc.objects.*` (requests), `k8sevents.>`
(of clients), `svc.binder.bind`, `dead.kube_api`. State: none; versions of events do not survive a restart.

Modules: `core` is what the rules of the API say, pure; `service` is the process, `serving` the application,
`reading` and `changing` answer requests, `bodies` is what comes with them, `large` has large ones worked on
in threads, `writing` asks the api, `binding` the binder, `event_reading` and `event_writing` are about
events, `measuring` about usage, `beginning` makes what every cluster has, `unscheduled` tells why pods are
not scheduled, `instruments` counts, `settings` says what can be set.
"""
