"""`podyard publish`: typed events for experiments, and scenarios."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import NatsOption, WhyOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.scenario.model import Publish, Scenario


def publish(
    event: str = "",
    /,
    *,
    file: Annotated[str, Parameter(name=["--filename", "-f"], show_default=False)] = "",
    old: Annotated[str, Parameter(show_default=False)] = "",
    count: int = 1,
    rate: float = 0.0,
    scenario: Annotated[str, Parameter(show_default=False)] = "",
    check: Annotated[bool, Parameter(negative="")] = False,
    why: WhyOption = "",
    nats: NatsOption = None,
) -> int:
    """Publish a typed event: the queue asks the hints of the plugins that registered it; no state changes.

    Resources: Pod, AssignedPod, UnschedulablePod, Node, PersistentVolumeClaim, storage.k8s.io/CSINode, ...,
    or a custom `<plural>.<version>.<group>`. Actions: Add, Delete, Update, UpdateNodeTaint, UpdateNodeLabel,
    UpdateNodeAllocatable, UpdatePodLabel, ...

    A scenario is a file of timed events, objects and conditions; see examples/scenarios/.

    ```
    podyard publish Node/UpdateNodeTaint
    podyard publish Node/UpdateNodeAllocatable -f node.yaml --old node-before.yaml
    podyard publish AssignedPod/Delete --count 10000 --rate 500
    podyard publish --scenario examples/scenarios/taint-and-untaint.yaml
    podyard publish --scenario mine.yaml --check
    ```

    :param event: RESOURCE/ACTION.
    :param file: The object as it is after the event.
    :param old: File with the object as it was before.
    :param count: How many events.
    :param rate: Events a second; 0 is as fast as possible.
    :param scenario: Play this file instead.
    :param check: Only check the scenario, do nothing.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.cli.scenario import load

    if bool(event) == bool(scenario):
        raise InputError("say either an event or --scenario FILE", "for example podyard publish Node/UpdateNodeTaint")
    if scenario:
        story = load.read(scenario)
        if check:
            print(f"{story.name}: {len(story.steps)} steps, no faults")
            return 0
        return session.run(nats, lambda bus: _play(bus, story, why))
    action = load.bare_event(event, file, old, count=count, rate=rate)
    return session.run(nats, lambda bus: _publish(bus, action, why))


async def _publish(bus: "Bus", action: "Publish", why: str) -> int:
    from podyard.cli import objects_client
    from podyard.cli.scenario import play

    print(await play.publish(bus, action, who=objects_client.person(), why=why))
    return 0


async def _play(bus: "Bus", story: "Scenario", why: str) -> int:
    from podyard.cli.scenario import play

    print(f"{story.name}: {story.description}" if story.description else story.name)

    def say(line: str) -> None:
        print(line, flush=True)

    await play.Player(bus, say, why=why or f"scenario {story.name}").play(story)
    return 0
