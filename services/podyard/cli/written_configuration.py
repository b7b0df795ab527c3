"""`--write-config-to`: the configuration that a service would run by, as a file that says the same again."""

import os
import sys
from typing import Any, Final

import msgspec

from podyard.bus.settings import without_secrets
from podyard.cli.errors import CliError, InputError, listed
from podyard.cli.render import plain
from podyard.runtime.service import Effective, ServiceDefinition
from podyard.runtime.settings import ServiceSettings

PRIVATE: Final = 0o600
"""A configuration may hold keys."""


def write(definition: ServiceDefinition[Any], common: ServiceSettings, own: Any, file: str) -> int:
    """Write it; exit code 0.

    Source: kube-scheduler v1.36.2, cmd/kube-scheduler/app/options/configfile.go (LogOrWriteConfig).

    :param common: without a name that was made up: two processes must not share one
    :raises InputError: if the configuration cannot be said by such a file
    :raises CliError: if the file cannot be written
    """
    found = Effective(own) if definition.in_force is None else definition.in_force(common, own)
    document = next(iter(found.documents.values()), None)
    if document is None:
        document = _options(definition.name, common, found.settings)
    elif found.unwritten:
        raise InputError(listed(found.unwritten), "leave these settings out, or give them beside the file")
    text = plain.dump(document, "yaml")
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise CliError(f"--write-config-to {file}: {error.strerror or error}", "is the name right?") from error
    sys.stderr.write("".join(f"note: {remark}\n" for remark in found.remarks))
    sys.stderr.write(f"wrote the configuration of {definition.name} to {file}\n")
    return 0


def _options(name: str, common: ServiceSettings, own: Any) -> dict[str, Any]:
    """The options file."""
    for server in common.nats.servers:
        if without_secrets(server) != server:
            told = f"nats.servers: {without_secrets(server)}: who connects is not written"
            raise InputError(told, "name a file by nats.credentials_file or nats.nkey_seed_file instead")
    document: dict[str, Any] = {**msgspec.to_builtins(common), name: msgspec.to_builtins(own)}
    if not common.instance:
        del document["instance"]
    return document
