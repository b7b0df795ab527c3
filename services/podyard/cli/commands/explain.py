"""`podyard explain pod NAME`: why a pod is where it is."""

from typing import TYPE_CHECKING

from podyard.cli.options import DEFAULT_NAMESPACE, JsonOutputOption, NamespaceOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus


def explain(
    kind: str,
    name: str = "",
    /,
    *,
    namespace: NamespaceOption = None,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Tell a pod's story: every attempt, what woke it, what did not, where it was bound, when it started.

    For each attempt: which plugin rejected how many nodes and why, the best scores. For each event that reached the pod's
    hints: which plugin answered what, and why.

    ```
    podyard explain pod web-1
    podyard explain pod/web-1 -n staging
    podyard explain pod web-1 -o json
    ```

    :param kind: pod, or pod/NAME.
    :param name: Name of the pod.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError

    found, slash, slashed = kind.partition("/")
    if found not in ("pod", "pods", "po"):
        raise InputError(f"cannot explain {found!r}", "podyard explain pod NAME")
    name = slashed if slash else name
    if not name:
        raise InputError("which pod?", "podyard explain pod NAME")

    async def work(bus: "Bus") -> int:
        await _explain(bus, namespace or DEFAULT_NAMESPACE, name, output)
        return 0

    return session.run(nats, work)


async def _explain(bus: "Bus", namespace: str, name: str, output: str) -> None:
    import time

    from podyard.cli.explain import gather, report
    from podyard.cli.render import console, plain
    from podyard.cli.render import explain as rendered

    story = report.build(await gather.gather(bus, namespace, name))
    if output == "json":
        print(plain.dump(story, "json"), end="")
    else:
        console.console().print(rendered.view(story, time.time()))
