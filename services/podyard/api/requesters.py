"""Who asks: as a request says, or as the NATS server knows it.

In a lab with accounts requests come through an import that shares who made them (`cli/security/accounts.py`):
the server adds the header `Nats-Request-Info`, in place of any that the client wrote. Source: nats-server
2.15, server/client.go (processServiceImport).
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from podyard.bus import key_files
from podyard.bus.requests import Request
from podyard.proto import headers
from podyard.runtime.settings import SettingsError


class _RequestInfo(msgspec.Struct):
    """What the server says of a client; of many fields the one that nobody chooses for himself."""

    user: str = ""
    """The public key of its nkey."""


log: Final = logging.getLogger("podyard.api")
_decode: Final = msgspec.json.Decoder(_RequestInfo).decode


class Requesters:
    """Names of those who ask.

    :param names: by public key; none: there are no accounts, and a request's own word is taken
    :param file: where they are from. It is read again when somebody comes whom they do not name and it has
        changed: keys are rotated while the api runs
    """

    def __init__(self, names: Mapping[str, str], file: str = "") -> None:
        self._names = names
        self._file = file
        self._seen = key_files.seen((file,))

    def who(self, request: Request, said: str) -> str:
        """Who is named as the author of what a request does.

        A request without the header was made in the account of the services, who say themselves who they are.

        :param said: what the request says
        """
        told = request.headers.get(headers.REQUEST_INFO) if self._names else None
        if told is None:
            return said
        try:
            user = _decode(told).user
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            user = ""
        if user and user not in self._names:
            self._read_again()
        return self._names.get(user, user or "somebody whom the NATS server does not name")

    def _read_again(self) -> None:
        now = key_files.seen((self._file,))
        if now == self._seen:
            return
        self._seen = now
        try:
            self._names = read_names(self._file)
        except SettingsError as error:
            log.warning("names stay as they were: %s", error)


def read_names(file: str) -> dict[str, str]:
    """Names by public key, as `podyard security init` writes them; none for no file.

    :raises SettingsError: if it cannot be read
    """
    if not file:
        return {}
    try:
        return msgspec.convert(json.loads(Path(file).read_bytes()), dict[str, str])
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise SettingsError((f"api.identities_file: {file} cannot be read: {error}",)) from error
