"""`podyard watch`: cluster events and decisions, live."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli import completing
from podyard.cli.options import JsonOutputOption, NatsOption, SelectorOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.watching import Filter


def watch(
    *,
    only: Annotated[str, Parameter(show_default=False)] = "",
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], show_default=False)] = "",
    name: Annotated[str, Parameter(show_default=False)] = "",
    kind: Annotated[str, Parameter(show_default=False, completer=completing.kinds)] = "",
    selector: SelectorOption = "",
    every: Annotated[float, Parameter(show_default=False)] = 0.0,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show what happens as it happens: changes of objects with the cluster events they amount to, bindings,
    attempts that did not bind, what each event moved and skipped, Kubernetes-like events, bare events, dead
    letters. The end says how much it was, by kind.

    A terminal shows each line as far as it is wide, and 40 lines a second at most; it counts the others. In
    a pipe, and with -o json, everything is there.

    ```
    podyard watch
    podyard watch --only attempt,requeue
    podyard watch -n default --name web-1
    podyard watch --kind pods -l app=web
    podyard watch --every 5
    podyard watch --kind nodes -o json | jq .text
    ```

    :param only: Kinds of lines, with commas: change, attempt, requeue, event, bare, dead.
    :param namespace: Only what concerns this namespace.
    :param name: Only what concerns objects of this name.
    :param kind: Only what is about objects of this kind.
    :param every: Instead of lines say how much happened, by kind, every so many seconds.
    """
    from podyard.cli import selection, session
    from podyard.cli.errors import InputError
    from podyard.cli.render.watch import KINDS
    from podyard.cli.targets import kind_named
    from podyard.cli.watching import Filter

    kinds = frozenset(filter(None, (word.strip() for word in only.split(","))))
    if unknown := kinds - set(KINDS):
        raise InputError(f"--only {', '.join(sorted(unknown))}: unknown", f"there are {', '.join(KINDS)}")
    if every and not 0.1 <= every <= 86_400:
        raise InputError(f"--every {every:g}: must be from 0.1 to 86400 s")
    resource = kind_named(kind).resource if kind else ""
    chosen = Filter(kinds, namespace, name, resource, selection.parse(selector))
    return session.run(nats, lambda bus: _watch(bus, chosen, output, every))


async def _watch(bus: "Bus", chosen: "Filter", output: str, every: float) -> int:
    import sys

    import anyio

    from podyard.cli.render import watch_counts
    from podyard.cli.watch_output import WatchOutput
    from podyard.cli.watching import Watcher

    shown = WatchOutput(output, every)
    started = anyio.Event()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Watcher(bus, chosen, shown.take).run, started)
            await started.wait()
            sys.stderr.write("watching; Ctrl-C ends it\n")
            shown.begin()
            await shown.tick()
    finally:
        if started.is_set():
            sys.stderr.write(f"{watch_counts.told(*shown.total())}\n")
    return 0
