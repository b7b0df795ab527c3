"""The profile that a case's configuration asks for."""

from typing import Any

from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile


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
