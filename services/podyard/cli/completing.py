"""What may stand next on a command line: kinds, names of objects in the cluster that is meant, names of labs.

A shell asks while somebody types. So nothing here fails, or says anything: where no cluster answers there is
nothing to choose from.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

    from podyard.bus.connection import Bus

DEFAULT_NAMESPACE: Final = "default"
LIMIT_S: Final = 2.0
"""Seconds for names: whoever presses a key does not wait longer."""

Chosen = dict[str, str]
"""Words and what they mean."""


def kinds(context: "CompletionContext") -> Chosen:
    """Kinds by plural and short names; behind `KIND/` the names of its objects."""
    from podyard.objects.kinds import KINDS

    kind, slash, _ = context.incomplete.partition("/")
    if slash:
        return {f"{kind}/{name}": "" for name in _names(context, kind)}
    described = {kind.resource: kind.kind for kind in KINDS}
    return described | {short: kind.kind for kind in KINDS for short in kind.short_names}


def kinds_of_get(context: "CompletionContext") -> Chosen:
    """The same, and what only `get` knows."""
    found = kinds(context)
    return found if "/" in context.incomplete else {**found, "all": "what kubectl get all lists", "events": "Event"}


def names(context: "CompletionContext") -> Iterable[str]:
    """Names of objects of the kind that was typed."""
    kind = _typed(context, "kind")
    if "/" in kind:
        return kinds(context)
    return _names(context, kind)


def named(kind: str) -> "Callable[[CompletionContext], Iterable[str]]":
    """What completes names of objects of one kind."""

    def complete(context: "CompletionContext") -> Iterable[str]:
        return _names(context, kind)

    return complete


def labs(context: "CompletionContext") -> Chosen:
    """Labs that run here, for `--nats`."""
    import os

    from podyard.cli.lab import state

    del context
    return {lab.name: lab.url for lab in state.running(os.environ)}


def _typed(context: "CompletionContext", name: str) -> str:
    found = context.get(name)
    return (found.raw if found is not None else None) or ""


def _names(context: "CompletionContext", kind: str) -> list[str]:
    """Names of living objects, sorted; none if they cannot be had."""
    from podyard.cli import session
    from podyard.cli.errors import CliError
    from podyard.objects.errors import UnknownKindError
    from podyard.objects.kinds import resource_for
    from podyard.proto import subjects

    try:
        meant = resource_for(kind)
    except UnknownKindError:
        return []
    namespace = _typed(context, "namespace") or DEFAULT_NAMESPACE
    scope = namespace if meant.namespaced and not meant.custom else None
    found: list[str] = []

    async def read(bus: "Bus") -> int:
        import anyio

        from podyard.proto import streams
        from podyard.shell import stream_reading

        wanted = subjects.objects(meant.resource, scope)
        with anyio.move_on_after(LIMIT_S):
            stored = await stream_reading.listing(bus, streams.CLUSTER.name, (wanted,))
            found.extend(subjects.parse_object(one.subject).name for one in stored if not one.deleted)
        return 0

    try:
        session.run(_typed(context, "nats") or None, read)
    except CliError:
        return []
    return sorted(found)
