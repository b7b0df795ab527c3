"""`podyard get`: objects as they are, or as they change."""

from typing import Annotated

from cyclopts import Parameter

from podyard.cli import completing
from podyard.cli.options import (
    DEFAULT_NAMESPACE,
    AllNamespacesOption,
    NameArgument,
    NamespaceOption,
    NatsOption,
    OutputOption,
    SelectorOption,
    WatchOption,
)


def get(
    kind: Annotated[str, Parameter(completer=completing.kinds_of_get)],
    /,
    *names: NameArgument,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    about: Annotated[str, Parameter(name="--for", show_default=False)] = "",
    output: OutputOption = "table",
    watch: WatchOption = False,
    nats: NatsOption = None,
) -> int:
    """Show objects, in kubectl's columns, joined with what the services know: the node from the binding, the
    status from the node's agent.

    ```
    podyard get pods
    podyard get pods -A -o wide
    podyard get nodes --watch
    podyard get deploy,rs,pods -l app=web
    podyard get pod/web-1 -o yaml
    podyard get all -n staging
    podyard get widgets.v1.example.com -o name
    podyard get events --for pod/web-1
    ```

    Nodes say how full they are: what their pods request of what there is for them (cpu, memory), and how many
    pods they have.

    Events are those that services sent and those that stored facts tell, of the last hour; the last that
    happened stands at the end.

    :param kind: Kinds with commas (plural, singular or short), KIND/NAME, `all`, `events`, or a custom
        PLURAL.VERSION.GROUP; by the names of its definition where one is stored.
    :param names: Names of objects of that kind.
    :param about: KIND/NAME: events about this object alone.
    """
    from podyard.cli import defined_kinds, getting, getting_events, session
    from podyard.cli.errors import InputError

    everywhere = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    if kind in getting_events.NAMES:
        asked = getting_events.parse(names, everywhere, about, selector, output)
        return session.run(
            nats, lambda bus: getting_events.follow(bus, asked) if watch else getting_events.once(bus, asked)
        )
    if about:
        raise InputError("--for is about events", f"podyard get events --for {about}")
    return defined_kinds.run(
        nats,
        kind,
        names,
        lambda kind, names: getting.parse(kind, names, everywhere, selector, output),
        getting.follow if watch else getting.once,
    )
