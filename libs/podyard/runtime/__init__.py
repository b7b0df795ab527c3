"""Running a service: settings in, one process with bus, health, metrics, logs and traces, an ordered end.

Duty: whatever every Podyard service needs around its own work. A service package writes `SERVICE =
ServiceDefinition(...)` in its `service.py`; `podyard run NAME` hands that to `process.run`.
Never in here: knowledge of any one service, Kubernetes objects, scheduling.

- `settings`, `layers`   one frozen Struct a topic: defaults < options file < `PODYARD_*` environment < flags
- `leases`     what can be set of a lease, and which times go together
- `service`    `ServiceDefinition`, `Service`
- `process`    `run`, the process around `main`: instruments, HTTP, bus, streams, and the way back
- `sessions`   names of sessions: one start of a process, or what it begins anew
- `shutdown`   SIGTERM and SIGINT: cancel, then end within a bound
- `clock`      the process' steady clock: all times and deadlines go by it
- `health`     named readiness checks, watches of life, event loop stalls
- `probes`     `/livez`, `/healthz`, `/readyz` as texts
- `pages`      what a service shows of itself beside health and metrics: `/configz`, `/debug/...`
- `http`       the servers, in a thread of their own; `web` is what they answer and to whom, `connections` who
  is let in and for how long, `uvicorn_parts` what of uvicorn that takes
- `certificates`, `identities`  by what the secure port goes; who asks, and what he may read
- `hiding`     takes secrets out of what is shown
- `dumps`      what a service writes to its log on SIGUSR2
- `core_dumps` none of what holds keys
- `ports`      free ports for processes that are about to start
- `micro`      the NATS micro service description (`$SRV.PING|INFO|STATS`)
"""
