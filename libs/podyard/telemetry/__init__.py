"""Traces, metrics and logs of a process: the only importer of the OpenTelemetry SDK.

Duty: spans made after the fact from what the cores say happened, their way out over OTLP, logs, metrics of
the process. Never in here: knowledge of what is traced; anything that could hold up a caller (a sink that is
down costs spans, which are counted, and nothing else).

- `traceparent`  W3C trace context as text: parse, new, child
- `tracing`      `Spans`: emit a span with explicit start, end, ids, links
- `conventions`  names of attributes that are not Podyard's own
- `export`       the bounded queue of finished spans and what was lost, loaded only when an exporter is wanted
- `otlp`, `console`  where batches go: to a collector, to the standard output
- `setup`        whether and how spans are exported (OTEL_*)
- `metrics`      the process's own metrics
- `reference_metrics`  families under exactly the names of kube-scheduler, kubelet and descheduler
- `plugin_faults`  what plugins do amiss: counted each time, logged once in a while
- `logs`         structlog on standard error, JSON or for a terminal
"""
