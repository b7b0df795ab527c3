"""`podyard get`: objects as they are, or as they change."""

from podyard.cli.options import (
    DEFAULT_NAMESPACE,
    AllNamespacesOption,
    NamespaceOption,
    NatsOption,
    OutputOption,
    SelectorOption,
    WatchOption,
)


def get(
    kind: str,
    /,
    *names: str,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
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
    ```

    :param kind: Kinds with commas (plural, singular or short), KIND/NAME, `all`, or a custom
        PLURAL.VERSION.GROUP.
    :param names: Names of objects of that kind.
    """
    from podyard.cli import getting, session

    everywhere = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    query = getting.parse(kind, names, everywhere, selector, output)
    return session.run(nats, lambda bus: getting.follow(bus, query) if watch else getting.once(bus, query))
