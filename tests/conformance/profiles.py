"""Profiles and settings that a case's configuration asks for, read by the services' own reader."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from podyard import configuration
from podyard.configuration import Configuration
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.queue.settings import QueueSettings


class Configured(NamedTuple):
    """What services are built from."""

    configuration: Configuration
    profiles: Sequence[Profile]
    """In the order of the file, with plugins of their own."""

    @property
    def names(self) -> list[str]:
        """schedulerNames of the profiles."""
        return [profile.name for profile in self.profiles]

    @property
    def queue_settings(self) -> QueueSettings:
        """Of the queue, where nothing but the configuration says anything."""
        return QueueSettings().completed(self.configuration)


def configured(config: dict[str, Any] | None, further: Sequence[Plugin] = ()) -> Configured:
    """A complete configuration; the default one if there is none.

    :param further: plugins that the configuration enables by their names
    """
    found = _default() if config is None else configuration.load(msgspec.json.encode(config).decode(), further)
    return Configured(found, tuple(found.profiles().values()))


def named(name: str) -> Profile:
    """The default profile under another scheduler name."""
    return default_profile(name)


@cache
def _default() -> Configuration:
    return configuration.default()
