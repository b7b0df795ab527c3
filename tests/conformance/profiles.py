"""Profiles and settings that a case's configuration asks for, read by the services' own reader."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from podyard import configuration
from podyard.configuration import Configuration
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.queue.settings import QueueSettings


def first_of(config: dict[str, Any] | None) -> Profile:
    """The first profile of a complete configuration; the default one if there is none."""
    if config is None:
        return default_profile()
    return next(iter(_load(config).profiles().values()))


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


def queue_of(config: dict[str, Any] | None, plugins: Sequence[Plugin]) -> QueueConfigured:
    """Profiles and settings of a queue.

    :param plugins: further ones, that the configuration enables by their names
    """
    if config is None:
        return QueueConfigured([default_profile()], QueueSettings())
    found = list(_load(config, plugins).profiles().values())
    given = {
        "pod_initial_backoff_s": config.get("podInitialBackoffSeconds"),
        "pod_max_backoff_s": config.get("podMaxBackoffSeconds"),
    }
    return QueueConfigured(found, QueueSettings(**{name: value for name, value in given.items() if value is not None}))


def _load(config: dict[str, Any], further: Sequence[Plugin] = ()) -> Configuration:
    return configuration.load(msgspec.json.encode(config).decode(), further)
