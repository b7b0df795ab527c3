"""Which resources are served, in which groups and versions: the built-in ones (`built_in`) and those of
stored CustomResourceDefinitions (`custom`).
"""

from collections.abc import Iterable, Iterator
from typing import Self

from podyard.kube_api.core.built_in import built_in
from podyard.kube_api.core.custom import added
from podyard.kube_api.core.order import group_place, version_place
from podyard.kube_api.core.served import Group, LeftOut, Served
from podyard.objects.documents import Document


class Catalogue:
    """All that is served. Immutable; iterates by group, version and resource in the order of discovery."""

    def __init__(self, resources: Iterable[Served], left_out: Iterable[LeftOut] = ()) -> None:
        """
        :param resources: no two of one group, version and resource
        """
        self._all = tuple(sorted(resources, key=_place))
        self._found = {(one.group, one.version, one.resource): one for one in self._all}
        by_version: dict[tuple[str, str], list[Served]] = {}
        for one in self._all:
            by_version.setdefault((one.group, one.version), []).append(one)
        self._by_version = {key: tuple(found) for key, found in by_version.items()}
        versions: dict[str, list[str]] = {}
        for group, version in by_version:
            versions.setdefault(group, []).append(version)
        self._groups = tuple(Group(name, tuple(found)) for name, found in versions.items())
        self.left_out = tuple(left_out)
        """What stored definitions ask for and is not served, with the reasons."""

    @classmethod
    def of(cls, definitions: Iterable[Document]) -> Self:
        """The built-in resources, and what these add to them.

        :param definitions: all CustomResourceDefinitions that are stored, in any order
        """
        custom = added(definitions)
        return cls((*built_in(), *custom.resources), custom.left_out)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, group: str, version: str, resource: str) -> Served | None:
        """The resource of that name in that version."""
        return self._found.get((group, version, resource))

    def groups(self) -> tuple[Group, ...]:
        """In the order of discovery; the core group, whose name is empty, first."""
        return self._groups

    def resources(self, group: str, version: str) -> tuple[Served, ...]:
        """Those of one version of a group, by name; none if it is not served."""
        return self._by_version.get((group, version), ())


def _place(one: Served) -> tuple[object, ...]:
    return group_place(one.group), version_place(one.version), one.resource
