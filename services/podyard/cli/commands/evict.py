"""`podyard evict`: end pods if their disruption budgets allow it."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import (
    DEFAULT_NAMESPACE,
    AllNamespacesOption,
    JsonOutputOption,
    KindArgument,
    NameArgument,
    NamespaceOption,
    NatsOption,
    SelectorOption,
    WhyOption,
)

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.proto.message import ObjectRef


def evict(
    kind: KindArgument,
    /,
    *names: NameArgument,
    selector: SelectorOption = "",
    node: Annotated[str, Parameter(show_default=False)] = "",
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    grace_period: int | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    why: WhyOption = "",
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Evict pods: end them if their disruption budgets allow it, as the eviction API does.

    A pod that stays is told with the budget that refused, how many healthy pods it wants and has, and when to
    try again; the exit code is 1.

    ```
    podyard evict pod web-1
    podyard evict pod web-1 web-2 --dry-run
    podyard evict pods -l app=web -n staging --why "node drained"
    podyard evict pods --node node-1 -A
    podyard evict pod web-1 -o json
    ```

    :param kind: pod, or pod/NAME.
    :param names: Names of pods.
    :param node: Pods on this node, as a drain.
    :param grace_period: Seconds a pod gets to end; 0 removes it at once; default: the pod's own.
    :param dry_run: Ask only; nothing is changed.
    """
    from podyard.cli import session, targets
    from podyard.cli.errors import InputError
    from podyard.proto import subjects

    if grace_period is not None and grace_period < 0:
        raise InputError(f"--grace-period {grace_period}: must be 0 or more")
    everywhere = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    if node and (names or targets.kind_named(kind).resource != subjects.PODS):
        raise InputError("--node chooses pods", "write `podyard evict pods --node NODE`, without names")
    wanted = targets.parse(kind, names, (), everywhere, selector=selector, all_=bool(node))

    async def work(bus: "Bus") -> int:
        found = await (
            targets.on_node(bus, node, everywhere, wanted.selector) if node else targets.resolve(bus, wanted)
        )
        for one in found:
            if one.resource != subjects.PODS:
                raise InputError(f"only pods can be evicted, not {one.resource}", "`podyard delete` ends other objects")
        return await _evict(bus, found, grace_period, why, output, dry_run=dry_run)

    return session.run(nats, work)


async def _evict(
    bus: "Bus", found: "list[ObjectRef]", grace_period: int | None, why: str, output: str, *, dry_run: bool
) -> int:
    import sys

    from podyard.cli import objects_client
    from podyard.cli.render import eviction, plain

    results = await objects_client.evict(bus, found, grace_period_s=grace_period, dry_run=dry_run, why=why)
    if output == "json":
        print(plain.dump(results, "json"), end="")
    elif not results:
        print("No pods found.")
    else:
        for result in results:
            good = result.outcome in objects_client.GOOD
            (sys.stdout if good else sys.stderr).write("\n".join(eviction.lines(result, dry_run=dry_run)) + "\n")
    return 0 if all(one.outcome in objects_client.GOOD for one in results) else 1
