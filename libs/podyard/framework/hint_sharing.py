"""How an event avoids asking every parked pod: pods of which a plugin's hints read the same share an answer.

An index may, besides, name those that an event can help at all (`events.HintIndex`). Both only save work:
what they leave out would have been answered Skip.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from podyard.framework.profile import Profile
from podyard.objects.core import Pod

HintSigner: TypeAlias = Callable[[Pod], Hashable]


@runtime_checkable
class SharesHints(Protocol):
    """A plugin whose hints read only a part of the parked pod. Without the method every pod is asked for
    itself.
    """

    def hint_signature(self, pod: Pod) -> Hashable:
        """All that the plugin's hints read of a parked pod, but its uid: an event about a parked pod itself
        is judged for it alone.
        """
        ...


class OwnRead(NamedTuple):
    """All that the plugin's own hints read of a parked pod: the signature of an `OwnRegistration`'s index."""

    read: Hashable
    """The plugin's `hint_signature`; the pod's uid if it has none."""
    obstacles: tuple[str, ...]


def signers_of(profile: Profile) -> Mapping[str, HintSigner]:
    """The plugins of a profile that say what their hints read, by name."""
    return {plugin.name: plugin.hint_signature for plugin in profile.plugins if isinstance(plugin, SharesHints)}
