"""`podyard demo`: the whole stack and a story, ending with an explained decision."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from podyard.cli.options import NatsOption

if TYPE_CHECKING:
    from podyard.bus import Bus
    from podyard.cli.demo.stage import Stage
    from podyard.cli.lab.lab import Lab

READY_WITHIN_S: Final = 30.0
GONE_WITHIN_S: Final = 60.0
"""Seconds that the pods of an earlier telling get to end: 30 s is a pod's usual grace period."""


def demo(
    *,
    keep: bool = False,
    data: str = "",
    running: Annotated[bool, Parameter(negative="")] = False,
    nats: NatsOption = None,
) -> int:
    """Run the whole stack on an embedded NATS server and tell a story, in under a minute.

    Pods are scheduled, wait, are woken by some events and not by others, are evicted and moved. Every step
    counts only when it is seen in what the services stored; the exit code is 0 only if all were.

    ```
    podyard demo
    podyard demo --keep
    podyard demo --running --nats nats://127.0.0.1:4222
    ```

    :param keep: Leave the stack running afterwards, until Ctrl-C, to look around with `podyard get pods` and
        others.
    :param data: Directory that keeps the cluster's state and the logs; default: a temporary one, removed at
        the end.
    :param running: Tell the story in the stack that runs already (see --nats): its nodes, and what an earlier
        telling left, are written over. It needs all services, a descheduler that looks every few seconds, and
        pressure that ends soon: deploy/lab/options.yaml.
    """
    import anyio

    from podyard.cli import session
    from podyard.cli.demo.actions import RefusedError
    from podyard.cli.demo.evidence import NotSeenError
    from podyard.cli.errors import CliError, InputError

    if running and (keep or data):
        raise InputError("--keep and --data are for a stack of the demo's own, --running is for one that runs already")
    advice = "the services' logs say more" + ("" if running else ": podyard demo --data DIR, then DIR/logs")
    try:
        if running:
            return session.run(nats, _tell_in_running)
        anyio.run(_demo, keep, data)
    except (NotSeenError, RefusedError) as error:
        raise CliError(str(error), advice) from error
    except BaseExceptionGroup as group:
        cause = session.first(group)
        if isinstance(cause, NotSeenError | RefusedError):
            raise CliError(str(cause), advice) from group
        raise cause from group
    return 0


async def _demo(keep: bool, data: str) -> None:
    import anyio

    from podyard.cli.demo.stage import Stage
    from podyard.cli.demo.theatre import options
    from podyard.cli.lab.lab import running_lab
    from podyard.cli.render import console

    out = console.console()
    stage = Stage(out)
    out.print("Each step counts when it is seen in what the services stored.\n", style="dim")
    with options(data, announce=keep) as planned:
        async with running_lab(planned) as lab:
            await _tell(lab, stage)
            out.print("\nAll steps were seen. To look around yourself: podyard up --nodes 3", style="green")
            if keep:
                out.print(f"\nThe stack runs on: NATS at {lab.url}, logs in {lab.directory}/logs. Ctrl-C ends it.")
                await anyio.sleep_forever()


async def _tell(lab: "Lab", stage: "Stage") -> None:
    """The lab's start, then the story."""
    from podyard.bus import BusSettings, connect

    with stage.step("A NATS server and seven services start, each a process of its own") as told:
        await lab.until_ready(READY_WITHIN_S)
        told.text = ", ".join(f"{child.service} (pid {child.pid})" for child in lab.children)
    async with connect(BusSettings(servers=(lab.url,), name="podyard-demo", service="cli")) as bus:
        await _play(bus, stage)


async def _tell_in_running(bus: "Bus") -> int:
    """The story in a stack that runs already."""
    from podyard.cli.demo.stage import Stage
    from podyard.cli.render import console

    await _play(bus, Stage(console.console()), afresh=True)
    return 0


async def _play(bus: "Bus", stage: "Stage", *, afresh: bool = False) -> None:
    """Every step in turn, then pod A explained."""
    from podyard.cli.demo import afresh as beginning
    from podyard.cli.demo.actions import Actions
    from podyard.cli.demo.evidence import gather
    from podyard.cli.demo.story import TRAINER, Story
    from podyard.cli.explain import gather as records
    from podyard.cli.render import explain as rendered
    from podyard.runtime import clock
    from podyard.telling import explanation

    async with gather(bus) as seen:
        do = Actions(bus)
        if afresh:
            with stage.step("What an earlier telling left goes", seen):
                await beginning.begin(do, seen, GONE_WITHIN_S)
        story = Story(do, seen)
        async with story.sensors():
            for step in story.steps():
                with stage.step(step.title, seen) as told:
                    await step.act()
                    told.text = await step.see()
        told_of_a = explanation.build(await records.gather(bus, *TRAINER))
        stage.show("podyard explain pod trainer: pod A, from what was stored", rendered.view(told_of_a, clock.now()))
