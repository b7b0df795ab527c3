"""`podyard top`: what schedulers, queue and binders do now."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from podyard.bus.connection import Bus
    from podyard.cli.top.looking import Place


def top(
    *,
    at: Annotated[tuple[str, ...], Parameter(name="--at", negative="", show_default=False)] = (),
    interval: float = 1.0,
    once: Annotated[bool, Parameter(negative="")] = False,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show schedulers (pops, decisions, shares, conflicts by cause), the queue's pools, binders (bindings,
    commits) and what is ready.

    On a terminal it goes on until Ctrl-C; in a pipe, with --once or with -o json it looks twice and ends.
    Rates are between two looks, other figures since the process began.

    ```
    podyard top
    podyard top --once
    podyard top -o json | jq '.schedulers[] | [.instance, .share, .conflict_rate]'
    podyard top --at scheduler-1=10.0.0.5:9100 --at scheduler-2=10.0.0.6:9100
    ```

    :param at: INSTANCE=HOST:PORT of a service's /metrics, if no lab runs here; may be repeated.
    :param interval: Seconds between two looks.
    :param once: Two looks, then end.
    """
    import os

    from podyard.cli import session
    from podyard.cli.errors import CliError, InputError
    from podyard.cli.render import console
    from podyard.cli.top import looking

    if not 0.05 <= interval <= 3600:
        raise InputError(f"--interval {interval:g}: must be from 0.05 to 3600 s")
    fixed = looking.named(at)

    def places() -> "list[Place]":
        lab = None if fixed else session.lab(nats, os.environ)
        found = fixed or (looking.in_lab(lab) if lab is not None else [])
        if not found:
            raise CliError(
                "no lab runs here", "start one with `podyard up`, or name services with --at INSTANCE=HOST:PORT"
            )
        return found

    places()

    async def work(bus: "Bus") -> int:
        if once or output == "json" or not console.console().is_terminal:
            await _once(bus, places(), interval, output)
        else:
            await _live(bus, places, interval)
        return 0

    return session.run(nats, work)


async def _once(bus: "Bus", places: "list[Place]", interval: float, output: str) -> None:
    import anyio

    from podyard.cli.render import console, plain
    from podyard.cli.render import top as rendered
    from podyard.cli.top import figures, looking

    due = anyio.current_time() + interval
    before = await looking.look(places)
    await anyio.sleep_until(due)
    found = figures.figures(before, await looking.look(places), await looking.ask_queue(bus))
    screen = console.console()
    if output == "json":
        print(plain.dump(found, "json"), end="")
    elif screen.is_terminal:
        screen.print(rendered.view(found, screen.width))
    else:
        print("\n".join(rendered.lines(found)))


async def _live(bus: "Bus", places: "Callable[[], list[Place]]", interval: float) -> None:
    import anyio
    from rich.live import Live

    from podyard.cli.render import console
    from podyard.cli.render import top as rendered
    from podyard.cli.top import figures, looking

    before: list[figures.Look] = []
    screen = console.console()
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            now = await looking.look(places())
            found = figures.figures(before, now, await looking.ask_queue(bus))
            live.update(rendered.view(found, screen.width), refresh=True)
            before = now
            await anyio.sleep(interval)
