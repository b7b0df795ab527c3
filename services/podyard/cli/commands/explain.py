"""`podyard explain`: why a pod is where it is, how a workload's pods are, and why none goes to a node."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from podyard.cli.options import DEFAULT_NAMESPACE, JsonOutputOption, NamespaceOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.scenario.model import Publish
    from podyard.objects.kinds import Kind
    from podyard.telling.moves import MoveStory

_USAGE: Final = "podyard explain pod|node|deployment|replicaset|statefulset|daemonset|job NAME"


def explain(
    kind: str = "",
    name: str = "",
    /,
    *,
    would: Annotated[str | None, Parameter(show_default=False)] = None,
    file: Annotated[
        tuple[str, ...],
        Parameter(name=["--filename", "-f"], negative="", allow_leading_hyphen=True, show_default=False),
    ] = (),
    nodes: Annotated[bool, Parameter(negative="")] = False,
    old: Annotated[str, Parameter(show_default=False)] = "",
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    namespace: NamespaceOption = None,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Tell a pod's story: every attempt, what woke it, what did not, where it was bound, when it started; or
    how the pods of a workload are, or what is on a node.

    For each attempt: which plugin rejected how many nodes and why, what is in the way on the node that lacks
    least, the best scores. For each event that reached the pod's hints: which plugin answered what, and why.
    What the descheduler moved or wanted to move, and what came of it.

    Of a workload: how many of its pods run, how many wait and for what, with what is in the way on the node
    that lacks least, and what would help. Of a node: how full it is, what is on it, and why pods that wait do
    not go there.

    With --would EVENT: what an event would do to the waiting pod, without publishing it: each rejecting
    plugin's hint and its answer.

    With --would alone: where the pods of a file would go, without creating them; of a workload, one of its
    pods. A scheduler rehearses a cycle and changes nothing.

    With --nodes: what each plugin says of each node now, and how good the nodes are that fit.

    ```
    podyard explain pod web-1
    podyard explain pod/web-1 -n staging
    podyard explain deployment web
    podyard explain node node-1
    podyard explain pod web-1 -o json
    podyard explain pod web-1 --all
    podyard explain pod web-1 --would Node/UpdateNodeAllocatable -f bigger-node.yaml
    podyard explain pod web-1 --nodes
    podyard explain -f web.yaml --would
    ```

    :param kind: pod, node, deployment, replicaset, replicationcontroller, statefulset, daemonset, job or
        cronjob; or KIND/NAME, as `podyard get -o name` prints it.
    :param name: Its name.
    :param would: RESOURCE/ACTION, as for `podyard publish`; or nothing: where the pods of the file would go.
    :param file: With --would EVENT: the object as it would be after the event; for Delete, as it was before.
        With --would alone: a file of objects, a directory of such files, or `-` for standard input; may be
        repeated.
    :param old: With --would EVENT: the object before the event; default: as it is stored now.
    :param nodes: Of each node what each plugin says; where many say the same, together.
    :param every: Each event that did not wake the pod, not one line for each event, plugin and reason;
        all pods of a node; with --nodes, a line for each node. `-o json` has them all.
    """
    from podyard.cli import session, targets
    from podyard.cli.commands import would_go
    from podyard.cli.errors import InputError
    from podyard.cli.scenario import load
    from podyard.proto import subjects
    from podyard.telling import workload

    asks = would_go.Asks(kind=kind, name=name, would=would, files=file, old=old, nodes=nodes, every=every)
    if asks.where:
        return would_go.run(asks, namespace, output, nats)
    found, slash, slashed = kind.partition("/")
    meant = targets.kind_named(found)
    told = meant.kind
    if meant.resource not in (subjects.PODS, subjects.NODES, *workload.EXPLAINED):
        raise InputError(f"cannot explain {found!r}", _USAGE)
    name = slashed if slash else name
    if not name:
        raise InputError(f"which {found}?", f"podyard explain {found} NAME")
    if would and told != "Pod":
        raise InputError("--would is about a pod that waits", f"podyard explain pod NAME --would {would}")
    if (file or old) and not would:
        raise InputError("-f and --old belong to --would EVENT", f"podyard explain pod {name} --would Node/Add -f FILE")
    if len(file) > 1:
        raise InputError("one file for --would EVENT", "an event is about one object")
    event = load.bare_event(would, "".join(file), old) if would else None

    async def work(bus: "Bus") -> int:
        if meant.resource == subjects.NODES:
            await _node(bus, name, output, every=every)
        elif told != "Pod":
            await _workload(bus, meant, namespace or DEFAULT_NAMESPACE, name, output)
        elif event is None:
            await _explain(bus, namespace or DEFAULT_NAMESPACE, name, output, every=every)
        else:
            await _would(bus, namespace or DEFAULT_NAMESPACE, name, event, output)
        return 0

    return session.run(nats, work)


async def _explain(bus: "Bus", namespace: str, name: str, output: str, *, every: bool) -> None:
    from msgspec.structs import replace

    from podyard.cli.errors import CliError
    from podyard.cli.explain import gather
    from podyard.cli.render import console, plain
    from podyard.cli.render import explain as rendered
    from podyard.runtime import clock
    from podyard.telling import explanation

    moves = await gather.moves(bus, namespace, "Pod", name)
    try:
        story = explanation.build(await gather.gather(bus, namespace, name), every=every or output == "json")
    except CliError:
        if not moves.moves:
            raise
        _show_moves(moves, output)  # of one that is long gone
        return
    story = replace(story, moves=moves.moves)
    if output == "json":
        print(plain.dump(story, "json"), end="")
    else:
        console.console().print(rendered.view(story, clock.now()))


async def _workload(bus: "Bus", kind: "Kind", namespace: str, name: str, output: str) -> None:
    from podyard.cli.explain import workload
    from podyard.cli.render import console, plain
    from podyard.cli.render import workload as rendered

    story = await workload.story(bus, kind, namespace, name)
    if output == "json":
        print(plain.dump(story, "json"), end="")
    else:
        console.console().print(rendered.view(story))


async def _node(bus: "Bus", name: str, output: str, *, every: bool) -> None:
    from podyard.cli.explain import node
    from podyard.cli.render import console, plain
    from podyard.cli.render import node as rendered

    story = await node.story(bus, name)
    screen = console.console()
    if output == "json":
        print(plain.dump(story, "json"), end="")
    else:
        screen.print(rendered.view(story, screen.width, every=every))


def _show_moves(story: "MoveStory", output: str) -> None:
    from podyard.cli.render import console, plain
    from podyard.cli.render import moves as rendered

    if output == "json":
        print(plain.dump(story, "json"), end="")
    else:
        console.console().print(rendered.view(story))


async def _would(bus: "Bus", namespace: str, name: str, event: "Publish", output: str) -> None:
    from podyard.cli.explain import would
    from podyard.cli.render import console, plain
    from podyard.cli.render import would as rendered

    reply = await would.ask(bus, namespace, name, event)
    if output == "json":
        print(plain.dump(reply, "json"), end="")
    else:
        console.console().print(rendered.view(f"{namespace}/{name}", reply))
