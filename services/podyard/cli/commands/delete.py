"""`podyard delete`: delete objects by file, name or selector."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import (
    DEFAULT_NAMESPACE,
    AllNamespacesOption,
    FilesOption,
    KindArgument,
    NameArgument,
    NamespaceOption,
    NatsOption,
    SelectorOption,
    WhyOption,
)

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.cli.targets import Wanted
    from podyard.proto.message import ObjectRef


def delete(
    kind: KindArgument = "",
    /,
    *names: NameArgument,
    files: FilesOption = (),
    selector: SelectorOption = "",
    all_: Annotated[bool, Parameter(name="--all", negative="")] = False,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    grace_period: int | None = None,
    wait: Annotated[bool, Parameter(negative="")] = False,
    timeout: float = 60.0,
    ignore_not_found: Annotated[bool, Parameter(negative="")] = False,
    why: WhyOption = "",
    nats: NatsOption = None,
) -> int:
    """Delete objects by kind and name, by files, or by selector.

    A bound pod is ended by its node within its grace period; only then does it disappear (`--wait` waits for
    that).

    ```
    podyard delete pod web-1 web-2
    podyard delete pod/web-1 --grace-period 0
    podyard delete -f web.yaml --wait
    podyard delete pods -l app=web -n staging
    ```

    :param kind: Kind, or kind/name.
    :param names: Names of objects of that kind.
    :param all_: All objects of the kind in the namespace.
    :param grace_period: Seconds a pod gets to end; 0 removes it at once; default: the pod's own.
    :param wait: Return when the objects are gone.
    :param timeout: Seconds to wait at most.
    :param ignore_not_found: Do not mind objects that are not there.
    """
    from podyard.cli import defined_kinds, targets
    from podyard.cli.errors import InputError

    if grace_period is not None and grace_period < 0:
        raise InputError(f"--grace-period {grace_period}: must be 0 or more")
    everywhere = None if all_namespaces else namespace or DEFAULT_NAMESPACE

    async def work(bus: "Bus", wanted: "Wanted") -> int:
        found = await targets.resolve(bus, wanted)
        code = await _delete(bus, found, grace_period, why, ignore_not_found=ignore_not_found)
        if wait and found:
            await _wait(bus, found, timeout)
        return code

    def parse(kind: str, names: tuple[str, ...]) -> "Wanted":
        return targets.parse(kind, names, files, everywhere, selector=selector, all_=all_)

    return defined_kinds.run(nats, kind, names, parse, work)


async def _delete(
    bus: "Bus", found: "list[ObjectRef]", grace_period: int | None, why: str, *, ignore_not_found: bool
) -> int:
    import sys

    from podyard.cli import objects_client
    from podyard.telling import names, words

    if not found:
        print("No objects found.")
        return 0
    code = 0
    for target, result in zip(
        found, await objects_client.delete(bus, found, grace_period_s=grace_period, why=why), strict=True
    ):
        full = names.of_resource(target.resource, target.name)
        if result.outcome in objects_client.GOOD:
            print(f"{full} {words.spoken(result.outcome)}")
        elif result.outcome != "notFound" or not ignore_not_found:
            reason = f": {result.reason}" if result.reason else ""
            where = f" in namespace {target.namespace}" if target.namespace else ""
            sys.stderr.write(f"error: {full}{where}: {words.spoken(result.outcome)}{reason}\n")
            code = 1
    return code


async def _wait(bus: "Bus", found: "list[ObjectRef]", timeout_s: float) -> None:
    """Until none of the objects is there.

    :raises CliError: they are still there after `timeout_s` seconds
    """
    import anyio

    from podyard.cli import stored_objects
    from podyard.cli.errors import CliError
    from podyard.cluster.keys import ObjectKey
    from podyard.proto import subjects

    keys = dict.fromkeys(ObjectKey(ref.resource, ref.namespace, ref.name) for ref in found)
    objects = stored_objects.nothing()
    changed = anyio.Event()

    def note(_changes: object) -> None:
        nonlocal changed
        changed.set()
        changed = anyio.Event()

    def left() -> list[str]:
        return [key.name for key in keys if objects.has(key)]

    with anyio.move_on_after(timeout_s) as limit:
        async with stored_objects.following(bus, objects, tuple(subjects.object_(*key) for key in keys), note):
            while left():
                await changed.wait()
    if limit.cancelled_caught:
        raise CliError(f"still there after {timeout_s:g} s: {', '.join(left())}", "`podyard get` shows their state")
