"""Configuration files as tests write them."""

import json
from typing import Any

from podyard import configuration
from podyard.configuration import Configuration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def document(**fields: Any) -> str:
    """A file with these fields at its top."""
    return json.dumps({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields})


def loaded(**fields: Any) -> Configuration:
    """The configuration of such a file."""
    return configuration.load(document(**fields))


def one_profile(**fields: Any) -> str:
    """A file with one profile of these fields."""
    return document(profiles=[fields])


def with_args(plugin: str, args: Any) -> str:
    """A file with arguments of one plugin."""
    return one_profile(pluginConfig=[{"name": plugin, "args": args}])


def names(enabled: list[dict[str, Any]]) -> list[str]:
    """Plugins of an extension point of `effective`."""
    return [plugin["name"] for plugin in enabled]
