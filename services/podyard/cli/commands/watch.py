"""`podyard watch`: cluster events and decisions, live."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.watching import Filter


def watch(
    *,
    only: Annotated[str, Parameter(show_default=False)] = "",
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], show_default=False)] = "",
    name: Annotated[str, Parameter(show_default=False)] = "",
    kind: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show what happens as it happens: changes of objects with the cluster events they amount to, bindings,
    attempts that did not bind, what each event moved and skipped, Kubernetes-like events, bare events, dead
    letters.

    ```
    podyard watch
    podyard watch --only attempt,requeue
    podyard watch -n default --name web-1
    podyard watch --kind nodes -o json | jq .text
    ```

    :param only: Kinds of lines, with commas: change, attempt, requeue, event, bare, dead.
    :param namespace: Only what concerns this namespace.
    :param name: Only what concerns objects of this name.
    :param kind: Only what is about objects of this kind.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.cli.render.watch import KINDS
    from podyard.cli.targets import kind_named
    from podyard.cli.watching import Filter

    kinds = frozenset(filter(None, (word.strip() for word in only.split(","))))
    if unknown := kinds - set(KINDS):
        raise InputError(f"--only {', '.join(sorted(unknown))}: unknown", f"there are {', '.join(KINDS)}")
    chosen = Filter(kinds, namespace, name, kind_named(kind).resource if kind else "")
    return session.run(nats, lambda bus: _watch(bus, chosen, output))


async def _watch(bus: "Bus", chosen: "Filter", output: str) -> int:
    import sys

    import anyio

    from podyard.cli.render import console, plain
    from podyard.cli.render import watch as rendered
    from podyard.cli.watching import Watcher

    screen = console.console()

    def show(line: rendered.Line) -> None:
        if output == "json":
            print(plain.line(line), flush=True)
        elif screen.is_terminal:
            screen.print(rendered.text(line))
        else:
            print(rendered.text(line).plain, flush=True)

    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Watcher(bus, chosen, show).run, started)
        await started.wait()
        sys.stderr.write("watching; Ctrl-C ends it\n")
    return 0
