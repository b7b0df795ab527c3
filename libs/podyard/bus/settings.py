"""How a process connects to NATS."""

import importlib.util
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from podyard.bus.errors import SettingsError
from podyard.proto import streams, subjects

_KEY_FILES: Final = ("user_credentials", "nkey_seed_file", "tls_ca_file", "tls_cert_file", "tls_key_file")
_SCHEMES = frozenset({"nats", "tls", "ws", "wss"})


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one connection.

    Times are seconds. The defaults follow what was seen to go wrong with those of nats-py 2.16 (60 reconnects
    and then closed for good, a ping every 120 s, 2 s between reconnects).
    """

    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    name: str = "podyard"
    """What the server calls the connection; also the service name of its dead letters unless `service` is
    set."""

    service: str = ""
    """Whose dead letters go where: `dead.<service>`. Empty means `name`."""

    inbox_prefix: str = ""
    """Subjects of replies start with it, so that permissions can tell services apart. Empty means
    `_INBOX.<service>`."""

    jetstream_prefix: str = "$JS.API"
    """Where JetStream's own requests go. Another one in an account that reads another's streams through its
    imports."""

    user_credentials: str = ""
    """Path of a NATS credentials file (JWT and seed)."""

    nkey_seed_file: str = ""
    """Path of an nkey seed, mode 0600."""

    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""

    request_timeout_s: float = 5.0
    """How long a publish or request waits for its answer unless the call says otherwise."""

    connect_timeout_s: float = 2.0
    reconnect_wait_s: float = 0.2
    """Between two attempts, give or take a quarter."""

    ping_interval_s: float = 2.0
    """Also how often the watchdog sends itself a message; the connection is made anew after four without an
    echo."""

    drain_timeout_s: float = 2.0
    """At the end: how long messages in hand may take."""

    marker_ttl_s: int = streams.MARKER_TTL_S
    """How long the server keeps deletion markers, and commit records; a reader that was without contact for
    half of it lists again."""

    publish_window: int = 1024
    """Messages of `publish_many` under way at once; also at most 16 MiB."""

    @property
    def shown_servers(self) -> str:
        """The servers' addresses for people, without passwords."""
        return without_secrets(", ".join(self.servers))

    @property
    def service_name(self) -> str:
        """Whose dead letters these are."""
        return self.service or self.name

    @property
    def key_paths(self) -> tuple[str, ...]:
        """Files by which the connection says who it is and knows the server; those that are set."""
        return tuple(filter(None, (getattr(self, setting) for setting in _KEY_FILES)))

    @property
    def inbox(self) -> str:
        """Prefix of reply subjects, without the final dot."""
        return self.inbox_prefix or f"_INBOX.{subjects.encode(self.service_name)}"

    def check(self) -> None:
        """Find what can be found wrong without a server.

        :raises SettingsError: naming the setting
        """
        if not self.servers:
            raise SettingsError("servers", "no server named; write for example nats://127.0.0.1:4222")
        for server in self.servers:
            _check_server(server)
        for setting in _KEY_FILES:
            path = getattr(self, setting)
            if path and not Path(path).is_file():
                raise SettingsError(setting, f"there is no file {path}")
        if (self.user_credentials or self.nkey_seed_file) and not _nkeys_installed():
            raise SettingsError("user_credentials", "signing needs the package nkeys; install nats-py[nkeys]")


def without_secrets(text: str) -> str:
    """An address, or a text with some, as people may see it: who connects, and with which password or token,
    is hidden."""
    return _BARE.sub("***@", _AFTER_SCHEME.sub("://***@", text))


_AFTER_SCHEME: Final = re.compile(r"://\S*@")
"""As far as the last `@`: passwords may hold any character."""
_BARE: Final = re.compile(r"(?<![^\s,'\"(])[^\s/'\"(]+@(?=\S)")
"""The same of an address without a scheme."""


def _check_server(server: str) -> None:
    shown = repr(without_secrets(server))
    try:
        parts = urlsplit(server)
        port = parts.port
    except ValueError as error:
        raise SettingsError("servers", f"{shown} is not a URL: {without_secrets(str(error))}") from error
    if parts.scheme not in _SCHEMES or not parts.hostname or port == 0:
        raise SettingsError("servers", f"{shown} is not of the form nats://host:port")


def _nkeys_installed() -> bool:
    """Whether nats-py's optional signing dependency is there."""
    return importlib.util.find_spec("nkeys") is not None
