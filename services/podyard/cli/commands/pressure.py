"""`podyard pressure`: synthetic usage of a node."""

from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from podyard.cli.options import NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.proto.signals import Course, Unused, UsedResource

ABOUT: Final = """Let a virtual node run short of something, and see whom it evicts.

```
podyard pressure node node-1 --memory 95% --ramp 30s
podyard pressure node node-1 --off
```
"""

_OBJECTS: Final = {"cpu": "cpu", "memory": "memory", "disk": "ephemeral-storage"}
"""What a node's object calls what there is of it."""
_SIGNALS: Final = {
    "memory": "memory.available",
    "disk": "nodefs.available",
    "inodes": "nodefs.inodesFree",
    "processes": "pid.available",
}

pressure = App(name="pressure", help=ABOUT)

Amount = Annotated[str, Parameter(show_default=False)]


@pressure.command
def node(
    name: str,
    /,
    *,
    cpu: Amount = "",
    memory: Amount = "",
    disk: Amount = "",
    inodes: Amount = "",
    processes: Amount = "",
    images: Amount = "",
    ramp: Annotated[str, Parameter(show_default=False)] = "",
    spike: Annotated[str, Parameter(show_default=False)] = "",
    off: Annotated[bool, Parameter(negative="")] = False,
    nats: NatsOption = None,
) -> int:
    """Say how much of a node is used, in all. It replaces what was said before, and stands until it is.

    An amount is a percentage of what the node has, a quantity, or either "of" what there is: of inodes and
    processes the node's object says nothing.

    ```
    podyard pressure node node-1 --memory 95%
    podyard pressure node node-1 --memory 95% --ramp 30s
    podyard pressure node node-1 --disk 90Gi --inodes "99% of 100000" --spike 1m
    podyard pressure node node-1 --disk 95% --images 30Gi
    podyard pressure node node-1 --off
    ```

    :param name: Name of the node.
    :param cpu: CPU that is used.
    :param memory: Memory that is used.
    :param disk: Use of the node's file system.
    :param inodes: Inodes that are used.
    :param processes: Processes that run.
    :param images: How much of the disk's use is images that no container needs: they are collected first.
    :param ramp: From what is used now, evenly within this time.
    :param spike: For this time, and then what was used before.
    :param off: Nothing is used any more.
    """
    from podyard.cli import session
    from podyard.cli.errors import InputError

    texts = {"cpu": cpu, "memory": memory, "disk": disk, "inodes": inodes, "processes": processes}
    wanted = {resource: text for resource, text in texts.items() if text}
    if bool(wanted or images) == off:
        raise InputError("say what is used, or --off", "for example podyard pressure node node-1 --memory 95%")
    if ramp and spike:
        raise InputError("--ramp and --spike: use one")
    if off and (ramp or spike):
        raise InputError("--ramp and --spike say how use goes on: --off ends it at once", "leave them out")
    if images and not disk:
        raise InputError("--images: images are part of what --disk uses", "say both, as in --disk 95% --images 30Gi")
    return session.run(nats, lambda bus: _press(bus, name, wanted, images, ramp, spike))


async def _press(bus: "Bus", name: str, wanted: dict[str, str], images: str, ramp: str, spike: str) -> int:
    from podyard.cli import objects_client
    from podyard.cli.commands import eviction
    from podyard.cli.scenario import play
    from podyard.proto import codec, subjects
    from podyard.proto.agents_api import PreviewRequest
    from podyard.proto.message import ObjectRef
    from podyard.proto.signals import NodeSignals
    from podyard.runtime import clock

    document = await play.stored_document(bus, ObjectRef(resource=subjects.NODES, name=name))
    capacity: dict[str, Any] = document.get("status", {}).get("capacity", {})
    courses = courses_of(wanted, capacity, ramp, spike)
    unused = unused_of(images)
    await eviction.ask(bus, PreviewRequest(node=name, limit=1))  # signals of a node that nobody plays reach nobody
    who, at = objects_client.person(), clock.now()
    said = NodeSignals(node=name, courses=courses, images=unused, standing=True, who=who, at=at)
    bus.send(subjects.signals(name), codec.encode(said))
    of_images = f", {images} of it images" if images else ""
    print(f"{name} is idle" if not wanted else f"{name}: {_told(wanted)}{_how(ramp, spike)}{of_images}")
    if wanted:
        print(f"`podyard eviction preview {name}` shows whom it would evict; end it with --off")
    return 0


def unused_of(images: str) -> "Unused":
    """What can be collected.

    :raises InputError: if it is no quantity
    """
    from podyard.cli.errors import InputError
    from podyard.objects import quantity
    from podyard.objects.errors import ObjectError
    from podyard.proto.signals import Unused

    try:
        amount = quantity.value(images or "0")
    except ObjectError as error:
        raise InputError(f"--images: {images!r}: {error.detail}") from error
    if amount < 0:
        raise InputError(f"--images: {images!r}: must be 0 or more")
    return Unused(disk_bytes=amount)


def courses_of(wanted: dict[str, str], capacity: dict[str, Any], ramp: str, spike: str) -> "tuple[Course, ...]":
    """How what is used goes on.

    :param wanted: amounts by resource
    :param capacity: quantities, as the node's object says
    :raises InputError: with all faults
    """
    from podyard.cli.errors import InputError
    from podyard.cli.scenario import actions, shapes
    from podyard.cli.scenario.faults import Faults
    from podyard.proto.signals import Course

    faults = Faults()
    seconds = actions.duration(ramp or spike or 0, "--ramp" if ramp else "--spike", faults)

    def on(amount: int) -> shapes.Points:
        if ramp:
            return shapes.ramp(amount, seconds)
        return shapes.spike(amount, seconds) if spike else shapes.constant(amount)

    found: list[Course] = []
    for resource, text in wanted.items():
        used, there_is = _amount(resource, text, capacity, faults)
        amount = used if resource == "cpu" else there_is - used
        signal = _SIGNALS.get(resource, "")
        found.append(
            Course(signal=signal, capacity=there_is if signal else 0, resource=_named(resource), points=on(amount))
        )
    if faults.found:
        raise InputError("\n".join(faults.found))
    return tuple(found)


def _named(resource: str) -> "UsedResource":
    return "cpu" if resource == "cpu" else "memory"


def _amount(resource: str, text: str, capacity: dict[str, Any], faults: Any) -> tuple[int, int]:
    """What is used, and what there is: bytes, pieces, nanocores."""
    from podyard.objects import quantity
    from podyard.objects.errors import ObjectError

    option = f"--{resource}"
    given, _, of = (part.strip() for part in text.partition(" of "))
    there_is = of or str(capacity.get(_OBJECTS.get(resource, ""), ""))
    if not there_is:
        faults.add(option, f"the node's object does not say what there is: write {option} '{given} of CAPACITY'")
        return 0, 0
    whole = quantity.nano if resource == "cpu" else quantity.value
    try:
        total = whole(there_is)
        used = round(total * float(given[:-1]) / 100) if given.endswith("%") else whole(given)
    except (ObjectError, ValueError, OverflowError) as error:
        faults.add(option, f"{text!r}: {getattr(error, 'detail', 'expected a percentage or a quantity')}")
        return 0, 0
    if not 0 <= used <= total:
        faults.add(option, f"{text!r}: must be from 0 to {there_is}, which is what there is")
        return 0, 0
    return used, total


def _told(wanted: dict[str, str]) -> str:
    return ", ".join(f"{resource} {text}" for resource, text in wanted.items()) + " used"


def _how(ramp: str, spike: str) -> str:
    if ramp:
        return f" in {ramp}"
    return f" for {spike}" if spike else ""
