"""The configuration that a service runs by, complete, as `/configz` shows it and `--write-config-to` writes
it."""

from typing import Any, Final

from podyard.configuration import files, leases
from podyard.configuration.model import Configuration
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.service import Effective
from podyard.runtime.settings import ServiceSettings

SECTION: Final = "componentconfig"
"""What kube-scheduler v1.36.2 calls it (cmd/kube-scheduler/app/server.go)."""


def of(process: ServiceSettings, own: Any) -> Effective:
    """Of a service that reads the scheduler configuration and sets nothing of it.

    :raises SettingsError: if it cannot be used
    """
    return Effective(own, {SECTION: files.of(process).written()})


def of_leader(process: ServiceSettings, own: LeaseSettings) -> Effective:
    """Of one that leads by it.

    :raises SettingsError: if it cannot be used
    """
    found = files.of(process)
    completed = files.leading(own, found, process)
    return Effective(completed, {SECTION: document(found, completed)})


def document(found: Configuration, own: LeaseSettings) -> dict[str, Any]:
    """The whole configuration of a service that leads.

    :param own: complete
    """
    return leases.written(own.lease_times(), found.written())
