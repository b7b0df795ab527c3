"""What the descheduler moved of a workload or a pod, put together from its records. Pure."""

from collections import Counter
from collections.abc import Sequence

from podyard.proto.message import Count
from podyard.proto.moves import MoveRecord
from podyard.telling.entries import Data


class Opposed(Data, frozen=True, kw_only=True):
    """Two plugins of which one takes pods back to where the other took them from."""

    plugin: str
    """profile/plugin of the one that undid the other's moves."""
    undoes: str
    times: Count


class MoveStory(Data, frozen=True, kw_only=True):
    """The moves of the last week, as many as are kept, in the order in which they happened."""

    namespace: str
    kind: str
    name: str
    moves: tuple[MoveRecord, ...] = ()
    opposed: tuple[Opposed, ...] = ()


def story_of(namespace: str, kind: str, name: str, records: Sequence[MoveRecord]) -> MoveStory:
    """Those that are about it, each with what is known last.

    :param records: of the namespace, in the order in which they were stored
    """
    last = {one.id: one for one in records if _is_about(one, kind, name)}
    moves = tuple(sorted(last.values(), key=lambda one: one.at))
    pairs = Counter((f"{one.profile}/{one.plugin}", one.undoes) for one in moves if one.undoes)
    opposed = tuple(Opposed(plugin=plugin, undoes=undoes, times=times) for (plugin, undoes), times in pairs.items())
    return MoveStory(namespace=namespace, kind=kind, name=name, moves=moves, opposed=opposed)


def _is_about(record: MoveRecord, kind: str, name: str) -> bool:
    if kind == "Pod":
        return name in (record.pod, record.to_pod)
    if kind == "ReplicaSet":
        return record.owner == name and record.kind in ("ReplicaSet", "Deployment")
    return (record.kind, record.name) == (kind, name)
