"""The profile that a case's configuration asks for."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.queue.settings import QueueSettings


def first_of(config: dict[str, Any] | None) -> Profile:
    """The first profile of a complete configuration; the default one if there is none.

    :raises NotImplementedError: for a configuration
    """
    if config is None:
        return default_profile()
    raise NotImplementedError("configurations cannot be read")


def named(name: str) -> Profile:
    """The default profile under another scheduler name."""
    return default_profile(name)


class QueueConfigured(NamedTuple):
    """What a queue is built from."""

    profiles: Sequence[Profile]
    settings: QueueSettings

    @property
    def names(self) -> list[str]:
        """schedulerNames of the profiles."""
        return [profile.name for profile in self.profiles]


def queue_of(config: dict[str, Any] | None, plugins: Sequence[Any]) -> QueueConfigured:
    """Profiles and settings of a queue.

    :param plugins: further ones that the configuration enables
    """
    if config is None and not plugins:
        return QueueConfigured([default_profile()], QueueSettings())
    raise NotImplementedError("configurations cannot be read")
