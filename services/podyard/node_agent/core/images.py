"""The images of a virtual node that no container uses: which of them a collection takes.

Those of which their node says one amount can be taken in parts of any size, and were last used long ago.
Others go as a whole: who was used longest ago first, of those never used who was pulled first.

Source: kubernetes v1.36.2, pkg/kubelet/images/image_gc_manager.go (GarbageCollect, freeOldImages, freeSpace,
byLastUsedAndDetected).
"""

import math
from typing import Final, NamedTuple

import msgspec

from podyard.proto.operations import Reason
from podyard.proto.signals import NodeSignals

PERIOD_S: Final = 300.0
"""Seconds between two collections by a node itself. Source: pkg/kubelet/kubelet.go, ImageGCPeriod."""
NEVER: Final = -math.inf
NO_CAPACITY: Final = Reason("InvalidDiskCapacity")
TOO_LITTLE: Final = Reason("FreeDiskSpaceFailed")
_EVERYTHING: Final = 100
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class ImagePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When images go (docs/rules.md, images-go-by-age-and-share). Defaults are the kubelet's."""

    high_percent: int = 85
    """Share of the image file system's use from which on images go..."""
    low_percent: int = 80
    """... down to this one."""
    min_age_s: float = 120.0
    """An image stays for so long after it was pulled, whatever needs its room."""
    max_age_s: float = 0.0
    """An image that nobody used for longer goes without need; 0: never."""

    @property
    def runs(self) -> bool:
        """Whether a node collects images by itself. Source: pkg/kubelet/kubelet.go,
        StartGarbageCollection."""
        return self.high_percent != _EVERYTHING or self.max_age_s != 0


class Image(NamedTuple):
    """Times in UTC seconds."""

    used_at: float
    """When a container used it last."""
    pulled_at: float
    disk_bytes: int
    inodes: int
    divisible: bool = False
    """Any part of it may go, for it is no single image."""


class Collection(NamedTuple):
    """What a node's own collection came to."""

    for_age: int = 0
    """Bytes of images that nobody used for too long."""
    for_space: int = 0
    """Bytes of images that went for their room."""
    fault: str = ""
    """Why nothing was collected, or why there is too little room still."""
    reason: Reason | None = None
    """Of the node's event that says so; empty if it has none."""


class Images:
    """State: the images that are left, and what those freed that are not."""

    def __init__(self, said: NodeSignals | None = None, now: float = 0.0) -> None:
        """:param said: what a node says at `now`; None: it has none"""
        self.freed_bytes = 0
        self.freed_inodes = 0
        self._left: list[Image] = []
        if said is None:
            return
        some = said.images
        if some.disk_bytes or some.inodes:
            self._left.append(Image(NEVER, NEVER, some.disk_bytes, some.inodes, divisible=True))
        for one in said.single_images:
            used_at = NEVER if one.used_s is None else now - one.used_s
            self._left.append(Image(used_at, now - one.pulled_s, one.disk_bytes, one.inodes))
        self._left.sort(key=lambda image: (image.used_at, image.pulled_at))

    def left(self) -> "Images":
        """Others, of which nothing was collected yet: what is left of these."""
        made = Images()
        made._left = list(self._left)
        return made

    def take_unused(self, policy: ImagePolicy, now: float) -> None:
        """All go that are old enough. Source: DeleteUnusedImages."""
        self._free(math.inf, policy, now)

    def take_old(self, policy: ImagePolicy, now: float, began: float) -> int:
        """All go that nobody used for too long; returns the bytes that were freed.

        :param began: UTC seconds, since when the node's agent looks on: age counts no earlier
        """
        if not policy.max_age_s or now - began <= policy.max_age_s:
            return 0
        old, self._left = self._left, []
        freed = 0
        for image in old:
            if now - image.used_at > policy.max_age_s:
                freed += self._gone(image)
            else:
                self._left.append(image)
        return freed

    def collect(self, available: int, capacity: int, policy: ImagePolicy, now: float, began: float) -> Collection:
        """A node's own collection: those too long unused, then down to the low percentage if the high one is
        reached.

        :param available: bytes that are left on the image file system, of `capacity`
        :param began: UTC seconds, since when the node's agent looks on: age counts no earlier
        """
        for_age = self.take_old(policy, now, began)
        if capacity <= 0:
            return Collection(for_age, fault="invalid capacity 0 on image filesystem", reason=NO_CAPACITY)
        available = min(available + for_age, capacity)
        used_percent = _EVERYTHING - available * 100 // capacity
        if used_percent < policy.high_percent:
            return Collection(for_age)
        wanted = capacity * (_EVERYTHING - policy.low_percent) // 100 - available
        freed = self._free(wanted, policy, now)
        if freed >= wanted:
            return Collection(for_age, freed)
        return Collection(for_age, freed, _insufficient(used_percent, capacity, freed), TOO_LITTLE)

    def _free(self, wanted: float, policy: ImagePolicy, now: float) -> int:
        """Free so many bytes, or what may go; returns the bytes that were freed."""
        images, self._left = self._left, []
        freed, enough = 0, False
        for image in images:
            if enough or image.used_at >= now or now - image.pulled_at < policy.min_age_s:
                self._left.append(image)
                continue
            gone, rest = _parted(image, wanted - freed)
            freed += self._gone(gone)
            self._left += [] if rest is None else [rest]
            enough = freed >= wanted
        return freed

    def _gone(self, image: Image) -> int:
        self.freed_bytes += image.disk_bytes
        self.freed_inodes += image.inodes
        return image.disk_bytes


def _parted(image: Image, wanted: float) -> tuple[Image, Image | None]:
    """What of an image goes, and what is left of it."""
    if not image.divisible or wanted >= image.disk_bytes:
        return image, None
    part = max(int(wanted), 0)
    inodes = image.inodes * part // image.disk_bytes
    rest = image._replace(disk_bytes=image.disk_bytes - part, inodes=image.inodes - inodes)
    return image._replace(disk_bytes=part, inodes=inodes), rest


def _insufficient(used_percent: int, capacity: int, freed: int) -> str:
    return (
        f"Insufficient free disk space on the node's image filesystem ({used_percent}% of {_shown(capacity)} used). "
        f"Failed to free sufficient space by deleting unused images (freed {freed} bytes). "
        "Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
    )


def _shown(size: int) -> str:
    """As messages print a size. Source: formatSize."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{size} B" if not power else f"{size / 1024**power:.1f} {_UNITS[power]}"
