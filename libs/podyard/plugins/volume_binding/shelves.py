"""Volumes by class, the smallest first, brought up to date volume by volume.

Source of the order: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume takes the smallest
that will do); of volumes of one size the reference takes any, Podyard the first by name.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from podyard.framework.snapshot import Snapshot
from podyard.objects import claims, quantity
from podyard.objects.core import PersistentVolume
from podyard.plugins.volume_binding import reach

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name."""

Traits: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Volume mode, attributes class and access modes."""


class Item:
    """What is worked out once about one version of a volume."""

    __slots__ = ("claim", "key", "label", "name", "reach", "storage_class", "traits", "volume")

    def __init__(self, volume: PersistentVolume) -> None:
        spec, meta = volume.spec, volume.metadata
        size = spec.capacity.get(claims.STORAGE)
        self.volume = volume
        self.name = meta.name
        self.key = (0 if size is None else quantity.parse(size).nano), meta.name
        """Size in nano-bytes and name: its place in the order."""
        self.storage_class = claims.class_of_volume(volume)
        self.reach = reach.compiled(None if spec.node_affinity is None else spec.node_affinity.required)
        self.label = self.reach.one_label
        self.traits: Traits = (
            spec.volume_mode or claims.FILESYSTEM,
            spec.volume_attributes_class_name or "",
            spec.access_modes,
        )
        own = spec.claim_ref
        self.claim: ClaimKey | None = None if own is None else (own.namespace, own.name)
        """The claim it says it is for."""

    @property
    def free(self) -> bool:
        """Whether it waits for a claim."""
        volume = self.volume
        return (
            self.claim is None
            and volume.status.phase == claims.AVAILABLE
            and volume.metadata.deletion_timestamp is None
        )


class Shelf:
    """Volumes of one class."""

    __slots__ = ("claimed", "free", "keys")

    def __init__(self) -> None:
        self.free: list[Item] = []
        """Those that wait for a claim, in order."""
        self.keys: list[tuple[int, str]] = []
        """Keys of `free`, aligned with it."""
        self.claimed: dict[ClaimKey, list[Item]] = {}
        """Those that say which claim they are for."""

    def put(self, item: Item) -> None:
        """A volume that was not on the shelf."""
        if item.claim is not None:
            self.claimed.setdefault(item.claim, []).append(item)
        elif item.free:
            at = bisect_left(self.keys, item.key)
            self.keys.insert(at, item.key)
            self.free.insert(at, item)

    def take(self, item: Item) -> None:
        """A volume that was put there."""
        if item.claim is not None:
            left = self.claimed[item.claim]
            left.remove(item)
            if not left:
                del self.claimed[item.claim]
        elif item.free:
            at = bisect_left(self.keys, item.key)
            del self.keys[at], self.free[at]

    def place(self, name: str) -> int | None:
        """Where a free volume stands."""
        return next((at for at, item in enumerate(self.free) if item.name == name), None)


NO_SHELF = Shelf()


class Shelves:
    """All volumes of a cluster."""

    def __init__(self, settled: Callable[[str], None] = lambda name: None) -> None:
        """:param settled: told of a volume by name when its object says whose it is, when it is gone, or
        another has its name"""
        self._settled = settled
        self._items: dict[str, Item] = {}
        self._shelves: dict[str, Shelf] = {}
        self._version = -1

    def shelf(self, storage_class: str, cluster: Snapshot) -> Shelf:
        """Volumes of a class, as they are now."""
        version = cluster.version(claims.VOLUMES)
        if version != self._version:
            self._sort_in(cluster.objects(claims.VOLUMES))
            self._version = version
        return self._shelves.get(storage_class, NO_SHELF)

    def item(self, volume: PersistentVolume) -> Item:
        """What is known about a volume, in whatever version."""
        known = self._items.get(volume.metadata.name)
        return known if known is not None and known.volume is volume else Item(volume)

    def named(self, name: str) -> Item | None:
        """The volume of that name when a shelf was last asked for."""
        return self._items.get(name)

    def _sort_in(self, objects: Mapping[tuple[str, str], Any]) -> None:
        items = self._items
        for (_, name), volume in objects.items():
            known = items.get(name)
            if known is None or known.volume is not volume:
                if known is not None:
                    self._shelves[known.storage_class].take(known)
                item = items[name] = Item(volume)
                if item.claim is not None or (known and known.volume.metadata.uid != volume.metadata.uid):
                    self._settled(name)
                self._shelves.setdefault(item.storage_class, Shelf()).put(item)
        if len(items) > len(objects):
            for name in [name for name in items if ("", name) not in objects]:
                gone = items.pop(name)
                self._shelves[gone.storage_class].take(gone)
                self._settled(name)
