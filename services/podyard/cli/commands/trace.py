"""`podyard trace POD`: a pod's attempts as Jaeger has them."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import DEFAULT_NAMESPACE, JsonOutputOption, NamespaceOption, NatsOption, PodArgument

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.errors import CliError
    from podyard.cli.jaeger.api import Jaeger
    from podyard.proto.queue_api import QueuedPodInfo


def trace(
    kind: PodArgument,
    name: PodArgument = "",
    /,
    *,
    namespace: NamespaceOption = None,
    limit: int = 20,
    jaeger: Annotated[str, Parameter(env_var="PODYARD_JAEGER_URL", show_default=False)] = "",
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show a pod's traces as trees: each attempt's way through queue, scheduler, binder and node agent, with
    the page to open.

    Below a span: what went wrong, what woke the pod, and the spans that it came from: the attempt before, the
    change that moved it, the eviction that it replaces. Times are from the trace's start, then how long it
    took. If Jaeger has nothing of the pod, the queue is asked why.

    ```
    podyard trace web-1
    podyard trace pod/web-1 -n staging
    podyard trace web-1 -o json
    PODYARD_JAEGER_URL=http://jaeger.lab:16686 podyard trace web-1
    ```

    :param kind: Name of the pod; `pod NAME` and `pod/NAME` are taken too.
    :param name: Name of the pod, after `pod`.
    :param limit: Most traces to show, the newest.
    :param jaeger: Where Jaeger's query API is; default: $PODYARD_JAEGER_URL, http://127.0.0.1:16686.
    """
    from podyard.cli.errors import InputError
    from podyard.cli.jaeger import pods
    from podyard.cli.jaeger.api import Jaeger
    from podyard.cli.render import console, plain
    from podyard.cli.render import trace as rendered

    if not 1 <= limit <= 1000:
        raise InputError(f"--limit {limit}: must be from 1 to 1000")
    wanted, there = _pod_name(kind, name), namespace or DEFAULT_NAMESPACE
    asked = Jaeger(jaeger)
    found = pods.find(asked, there, wanted, limit)
    if not found.traces:
        raise _nothing(asked, there, wanted, _queued(nats, there, wanted))
    if output == "json":
        print(plain.dump([*found.traces], "json"), end="")
    else:
        console.console().print(rendered.view(found, asked.link))
    return 0


def _pod_name(kind: str, name: str) -> str:
    from podyard.cli.errors import InputError

    before, slash, after = kind.partition("/")
    if name or slash:
        if before not in ("pod", "pods", "po") or bool(name) == bool(after):
            raise InputError(f"cannot trace {' '.join(filter(None, (kind, name)))!r}", "podyard trace NAME, of a pod")
        return name or after
    return kind


def _queued(nats: str | None, namespace: str, name: str) -> "QueuedPodInfo | None":
    """Where the queue has the pod; None if it does not, or nobody answers."""
    from podyard.cli import session
    from podyard.cli.errors import CliError
    from podyard.cli.explain.gather import queued

    found: list[QueuedPodInfo | None] = []

    async def work(bus: "Bus") -> int:
        found.append(await queued(bus, namespace, name))
        return 0

    try:
        session.run(nats, work)
    except CliError:
        return None
    return found[0] if found else None


def _nothing(jaeger: "Jaeger", namespace: str, name: str, queued: "QueuedPodInfo | None") -> "CliError":
    """Why there may be no trace: no service sends any, the pod waits, or its trace was not sampled."""
    from podyard.cli.errors import CliError

    if not any(service.startswith("podyard-") for service in jaeger.services()):
        advice = (
            "no service of Podyard has sent it a span: start them with OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318"
        )
    elif queued is not None:
        waits = f"it is {queued.pool}" + (
            f" by {queued.gating_plugin}: {queued.message}" if queued.gating_plugin else ""
        )
        advice = f"{waits}; an attempt has a trace when it has ended: podyard explain pod {name} -n {namespace}"
    else:
        advice = f"good attempts are sampled (OTEL_TRACES_SAMPLER_ARG); what is stored: podyard explain pod {name} -n {namespace}"
    return CliError(f'Jaeger at {jaeger.url} has no trace of pod "{name}" in namespace "{namespace}"', advice)
