"""`podyard eviction`: what the eviction managers of nodes would do."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from podyard.cli.options import JsonOutputOption, NatsOption, NodeArgument

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.proto.agents_api import PreviewReply, PreviewRequest

ABOUT: Final = """Ask a node whom it would evict, and why.

```
podyard eviction preview node-1
podyard eviction preview node-1 --signal memory.available=200Mi
```
"""

ANSWER_S: Final = 0.5
"""Seconds that the agent gets: who does not play the node says nothing."""

eviction = App(name="eviction", help=ABOUT)


@eviction.command
def preview(
    node: NodeArgument,
    /,
    *,
    signal: Annotated[tuple[str, ...], Parameter(name="--signal", negative="", show_default=False)] = (),
    limit: int = 20,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show whom a node would evict now, in which order, and who is spared. Nothing is changed.

    The node's eviction manager plays its rounds on a copy: thresholds with what was observed, until when a
    soft one waits, what would be collected, then the pods, as if nothing got better and every pod took all
    the time that it is given.

    ```
    podyard eviction preview node-1
    podyard eviction preview node-1 --signal memory.available=200Mi
    podyard eviction preview node-1 --signal "nodefs.inodesFree=100 of 5000" --signal pid.available=1%
    podyard eviction preview node-1 -o json
    ```

    :param node: Name of the node.
    :param signal: SIGNAL=AVAILABLE, or SIGNAL="AVAILABLE of CAPACITY", in the place of what was observed; may
        be repeated. AVAILABLE is a quantity or a percentage.
    :param limit: Most pods to show.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.proto.agents_api import MOST_PREVIEWED, PreviewRequest

    if not 1 <= limit <= MOST_PREVIEWED:
        raise InputError(f"--limit {limit}: must be from 1 to {MOST_PREVIEWED}")
    request = PreviewRequest(node=node, signals=_signals(signal), limit=limit)

    async def work(bus: "Bus") -> int:
        _show(await ask(bus, request), output)
        return 0

    return session.run(nats, work)


def _signals(texts: tuple[str, ...]) -> dict[str, str]:
    from podyard.cli.errors import InputError

    found: dict[str, str] = {}
    for text in texts:
        name, given, level = text.partition("=")
        if not given or name in found:
            advice = "for example --signal memory.available=200Mi"
            raise InputError(f"--signal {text}: expected SIGNAL=AVAILABLE, each signal once", advice)
        found[name] = level
    return found


async def ask(bus: "Bus", request: "PreviewRequest") -> "PreviewReply":
    """What the agent that plays the node says.

    :raises CliError: if nobody who plays it answers, or what is asked cannot be
    """
    from podyard.bus.errors import NoResponders, RemoteError, RequestTimeout
    from podyard.cli.errors import CliError, InputError
    from podyard.proto import codec, subjects
    from podyard.proto.agents_api import PreviewReply

    subject = subjects.preview(request.node)
    try:
        answer = await bus.request(subject, codec.encode(request), timeout_s=ANSWER_S)
    except (NoResponders, RequestTimeout) as error:
        advice = "`podyard get nodes` shows which there are; is the node agent running? (`podyard up`)"
        raise CliError(f"no agent that plays node {request.node} answers", advice) from error
    except RemoteError as error:
        raise InputError(error.reason) from error
    return codec.decode(PreviewReply, answer.payload)


def _show(reply: "PreviewReply", output: str) -> None:
    from podyard.cli.render import plain
    from podyard.cli.render import preview as rendered

    print(plain.dump(reply, "json") if output == "json" else "\n".join(rendered.lines(reply)) + "\n", end="")
