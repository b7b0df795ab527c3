"""Custom kinds by the names that their stored definitions give them: `podyard get widgets`."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from podyard.bus.connection import Bus
from podyard.cli import session, stored_objects
from podyard.cli.errors import CliError
from podyard.objects.errors import UnknownKindError
from podyard.objects.extensions import DEFINITIONS, CustomResourceDefinition
from podyard.objects.kinds import plural_of, resource_for

T = TypeVar("T")


def is_known(words: Iterable[str]) -> bool:
    """Whether each kind in these words (`pods,widgets`, `widget/name`) goes by a name that needs no
    definition."""
    return all(_known(kind) for kind in _kinds_in(words))


def run(
    nats: str | None,
    kind: str,
    names: tuple[str, ...],
    parse: Callable[[str, tuple[str, ...]], T],
    work: Callable[[Bus, T], Awaitable[int]],
) -> int:
    """Understand what was typed, and do it. Definitions are asked only if something is not known without
    them; if nobody can be asked, the words are wrong.

    :raises InputError: what `parse` raises
    """
    if is_known((kind, *names)):
        asked = parse(kind, names)
        return session.run(nats, lambda bus: work(bus, asked))
    understood: list[T] = []

    async def with_definitions(bus: Bus) -> int:
        understood.append(parse(*await spelled(bus, kind, names)))
        return await work(bus, understood[0])

    try:
        return session.run(nats, with_definitions)
    except CliError:
        if not understood:
            parse(kind, names)
        raise


async def spelled(bus: Bus, kind: str, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Kind and names as they were typed, with `<plural>.<version>.<group>` for kinds that a definition
    names: in every version that it serves, in the one that is stored before a name. The rest stays as it is.
    """
    objects = await stored_objects.read(bus, [DEFINITIONS])
    found = objects.view.objects(DEFINITIONS).values()
    definitions = [one for one in found if isinstance(one, CustomResourceDefinition)]
    first = ",".join(_spelled(word, definitions, one=bool(names)) for word in kind.split(","))
    return first, tuple(_spelled(name, definitions, one=True) if "/" in name else name for name in names)


def _kinds_in(words: Iterable[str]) -> Iterable[str]:
    for number, word in enumerate(words):
        if number == 0 or "/" in word:
            yield from (kind for kind in word.partition("/")[0].split(",") if kind not in ("", "all"))


def _known(kind: str) -> bool:
    try:
        resource_for(kind)
    except UnknownKindError:
        return False
    return True


def _spelled(word: str, definitions: Iterable[CustomResourceDefinition], *, one: bool) -> str:
    kind, slash, name = word.partition("/")
    if _known(kind):
        return word
    for definition in definitions:
        spec = definition.spec
        if kind.lower() in _names(definition):
            versions = [
                version.name for version in spec.versions if (version.storage if one or slash else version.served)
            ]
            return ",".join(f"{plural_of(spec.names.kind)}.{version}.{spec.group}{slash}{name}" for version in versions)
    return word


def _names(definition: CustomResourceDefinition) -> set[str]:
    names, group = definition.spec.names, definition.spec.group
    short = {names.plural, names.singular or names.kind.lower(), *names.short_names}
    return short | {f"{names.plural}.{group}"}
