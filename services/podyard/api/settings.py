"""What can be set of the api."""

from typing import Annotated

import msgspec
from msgspec import Meta


class ApiSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `api` of the options file."""

    max_inflight: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Requests of one verb in hand at once; each has up to 256 objects, so more would only wait for the same
    core."""
    secrets_key_file: str = ""
    """Key by which values of Secrets are encrypted before they are stored: 64 hexadecimal digits. All
    instances need the same; the first one makes it if the file is not there. Without a file Secrets are
    refused."""
    identities_file: str = ""
    """Names of identities by their public keys, in a lab with accounts: who asks is then what the NATS server
    says, not the request."""
