"""`podyard mend`: say what a placement was that cannot be read, so that a binder may lead again."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus


def mend(
    subject: str = "",
    /,
    *,
    node: Annotated[str, Parameter(show_default=False)] = "",
    gone: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    nats: NatsOption = None,
) -> int:
    """Say what a binding was that cannot be read, or write the fence anew. Until then no binder leads: room
    that is taken would look free.

    Only the binder's identity may write placements: on a secured lab run it with
    `eval "$(podyard security env DIRECTORY binder)"`.

    ```
    podyard mend
    podyard mend placement.bindings.default.web-1.3f2a --node n1
    podyard mend placement.bindings.default.web-1.3f2a --gone --yes
    podyard mend placement.fence
    ```

    :param subject: What /readyz of the binder names; without it all that cannot be read are listed, with what
        is known of them.
    :param node: The pod was bound to this node: it takes there what it requests, and goes on running.
    :param gone: Nothing of the pod runs any more: it takes no room, and its uid is never bound again.
    :param yes: Do it; without it, it is said and asked for.
    """
    from podyard.cli import mending, session
    from podyard.cli.errors import InputError

    if node and gone:
        raise InputError("both --node and --gone were given", "either the pod runs there, or nothing of it runs")
    if not subject and (node or gone):
        raise InputError("which one?", "`podyard mend` lists those that cannot be read")

    async def work(bus: "Bus") -> int:
        if not subject:
            return await mending.show(bus)
        return await mending.mend(bus, subject, node=node, gone=gone, agreed=yes)

    return session.run(nats, work)
