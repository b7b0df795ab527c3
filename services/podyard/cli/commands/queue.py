"""`podyard queue`: what is where in the scheduling queue."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption, NatsOption, WatchOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.proto.queue_api import QueueListReply, QueueListRequest


def queue(
    *,
    pool: str = "",
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], show_default=False)] = "",
    name: Annotated[str, Parameter(show_default=False)] = "",
    limit: int = 50,
    watch: WatchOption = False,
    interval: float = 1.0,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Show the scheduling queue: which pods wait where, since when, until when, and for what.

    ```
    podyard queue
    podyard queue --pool unschedulable --limit 500
    podyard queue --watch
    podyard queue --name web-1 -o json
    ```

    :param pool: activeQ, backoffQ, errorBackoffQ, unschedulable, gated, inFlight or binding; default: all.
    :param namespace: Only this namespace; default: every one.
    :param name: Only pods of this name.
    :param limit: Most pods to list; the counts are of all.
    :param interval: Seconds between two looks with --watch.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.cli.render.queue import POOLS
    from podyard.proto.queue_api import QueueListRequest

    if pool and pool not in POOLS:
        raise InputError(f"no pool is called {pool!r}", f"there are {', '.join(POOLS)}")
    if not 0 <= limit <= 10_000:
        raise InputError(f"--limit {limit}: must be from 0 to 10000")
    request = QueueListRequest(pool=pool, namespace=namespace, name=name, limit=limit)

    async def work(bus: "Bus") -> int:
        if watch and output == "text":
            await _live(bus, request, interval)
        elif watch:
            await _stream(bus, request, interval)
        else:
            await _once(bus, request, output)
        return 0

    return session.run(nats, work)


async def _list(bus: "Bus", request: "QueueListRequest") -> "QueueListReply":
    from podyard.bus.errors import NoResponders
    from podyard.cli.errors import CliError
    from podyard.proto import codec, subjects
    from podyard.proto.queue_api import QueueListReply

    try:
        answer = await bus.request(subjects.queue_verb("list"), codec.encode(request))
    except NoResponders as error:
        advice = "is the queue running? (`podyard up`, or `podyard run queue`); a new leader takes up to 10 s"
        raise CliError("no queue leader answers", advice) from error
    return codec.decode(QueueListReply, answer.payload)


async def _once(bus: "Bus", request: "QueueListRequest", output: str) -> None:
    from podyard.cli.render import console, plain
    from podyard.cli.render import queue as rendered
    from podyard.runtime import clock

    reply = await _list(bus, request)
    screen = console.console()
    if output == "json":
        print(plain.dump(reply, "json"), end="")
    elif screen.is_terminal:
        screen.print(rendered.view(reply, clock.now(), screen.width))
    else:
        print("\n".join(rendered.lines(reply, clock.now())))


async def _stream(bus: "Bus", request: "QueueListRequest", interval: float) -> None:
    import anyio

    from podyard.cli.render import plain

    while True:
        print(plain.line(await _list(bus, request)), flush=True)
        await anyio.sleep(interval)


async def _live(bus: "Bus", request: "QueueListRequest", interval: float) -> None:
    import anyio
    from rich.live import Live
    from rich.text import Text

    from podyard.cli.errors import CliError
    from podyard.cli.render import console
    from podyard.cli.render import queue as rendered
    from podyard.runtime import clock

    screen = console.console()
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            try:
                shown = rendered.view(await _list(bus, request), clock.now(), screen.width, screen.height)
                live.update(shown, refresh=True)
            except CliError as error:
                live.update(Text(f"{error.message}; looking again", style="yellow"), refresh=True)
            await anyio.sleep(interval)
