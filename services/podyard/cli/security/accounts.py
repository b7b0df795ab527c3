"""NATS servers' configuration from the table of identities. Pure: public keys and paths in, a JSON document
out.

A mirror usually makes its consumer in the account it reads from, which for that must export
`$JS.API.CONSUMER.CREATE`: a door for everybody who gets a message to that import's subject, since nobody
checks where a push consumer delivers. Here CORE's consumers for the mirrors are made beforehand (NATS
ADR-60), and CORE exports no more than their reset, flow control and acknowledgements: who abuses those can
delay a mirror.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from podyard.bus.embedded import batch_limits
from podyard.cli.security import identities
from podyard.cli.security.identities import CORE, EDGE, MIRROR_CONSUMER, READ, READ_API, SYSTEM, Identity
from podyard.proto import streams, subjects

MIRROR_API: Final = "JS.core.API"
"""Prefix under which READ knows the little of CORE's JetStream that its mirrors need."""

REPLY_WITHIN: Final = "2m"
"""How long a request may be answered: above any time-out."""

SIGNED: Final = frozenset(
    {
        subjects.OBJECTS_APPLY,
        subjects.ALL_NODE_APPLIES,
        subjects.OBJECTS_DELETE,
        subjects.ALL_NODE_DELETES,
        subjects.OBJECTS_EVICT,
        subjects.OBJECTS_REVEAL,
    }
)
"""Requests to which the server adds who made them: the author of what becomes of them, or who was shown a
Secret."""

CLIENT_PORT: Final = 4222
ROUTE_PORT: Final = 6222
MONITOR: Final = "127.0.0.1:8222"


def accounts(known: Sequence[Identity], public_keys: Mapping[str, str]) -> dict[str, Any]:
    """The accounts with their users, exports and imports.

    :param public_keys: by identity name
    """
    users = {
        account: [_user(identity, public_keys[identity.name]) for identity in known if identity.account == account]
        for account in (CORE, READ, EDGE, SYSTEM)
    }
    return {
        CORE: {"jetstream": "enabled", "users": users[CORE], "exports": _core_exports()},
        READ: {"jetstream": "enabled", "users": users[READ], "exports": _read_exports(), "imports": _read_imports()},
        EDGE: {"users": users[EDGE], "imports": _edge_imports()},
        SYSTEM: {"users": users[SYSTEM]},
    }


def with_key(made: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The same accounts in which `new` may do what `old` may.

    :raises KeyError: if nobody has `old`
    """
    users = {account: list(found.get("users", ())) for account, found in made.items()}
    if any(user["nkey"] == new for found in users.values() for user in found):
        return dict(made)
    for found in users.values():
        for user in [user for user in found if user["nkey"] == old]:
            found.append({**user, "nkey": new})
            return _with_users(made, users)
    raise KeyError(old)


def without_key(made: Mapping[str, Any], old: str) -> dict[str, Any]:
    """The same accounts without `old`."""
    users = {
        account: [user for user in found.get("users", ()) if user["nkey"] != old] for account, found in made.items()
    }
    return _with_users(made, users)


def _with_users(made: Mapping[str, Any], users: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {account: {**found, "users": users[account]} for account, found in made.items()}


def mirror_subject(stream: str) -> str:
    """Where CORE delivers what READ's mirror of `stream` takes."""
    return f"mirror.{stream}"


def server(made_accounts: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Settings that every server needs: accounts and TLS.

    :param folder: where the server finds its key and certificates
    """
    return {
        "accounts": dict(made_accounts),
        "system_account": SYSTEM,
        "tls": {**_certificates(folder), "verify": True, "timeout": 5},
        "jetstream": {
            "max_file_store": store_limit_bytes(),
            "max_memory_store": 256 * streams.MEBIBYTE,
            "limits": batch_limits(),
        },
        "max_payload": streams.MAX_PAYLOAD_BYTES,
        "max_pending": 64 * streams.MEBIBYTE,
    }


def single(made_accounts: Mapping[str, Any], folder: str, store_dir: str) -> dict[str, Any]:
    """Configuration of a server that stands alone; its monitor listens on loopback only."""
    base = server(made_accounts, folder)
    return {
        "server_name": "podyard-nats",
        "port": CLIENT_PORT,
        "http": MONITOR,
        **base,
        "jetstream": {**base["jetstream"], "store_dir": store_dir},
    }


def clustered(
    made_accounts: Mapping[str, Any], folder: str, store_dir: str, hosts: Sequence[str]
) -> list[dict[str, Any]]:
    """Configurations of the servers of one cluster, in the order of `hosts`: written to disk before it is
    acknowledged."""
    alone = single(made_accounts, folder, store_dir)
    return [
        {
            **alone,
            "server_name": host,
            "jetstream": {**alone["jetstream"], "sync_interval": "always"},
            "cluster": {
                "name": "podyard",
                "port": ROUTE_PORT,
                "routes": [f"nats://{other}:{ROUTE_PORT}" for other in hosts if other != host],
                "tls": {**_certificates(folder), "verify": True, "timeout": 5},
            },
        }
        for host in hosts
    ]


def store_limit_bytes() -> int:
    """Room for the streams and their mirrors; nothing is reserved on the disk."""
    return 2 * sum(spec.max_bytes for spec in streams.ALL_STREAMS) + 1024 * streams.MEBIBYTE


def _certificates(folder: str) -> dict[str, str]:
    return {
        "cert_file": f"{folder}/server.crt",
        "key_file": f"{folder}/server.key",
        "ca_file": f"{folder}/ca.crt",
    }


def _user(identity: Identity, public_key: str) -> dict[str, Any]:
    own_inbox = f"{identity.inbox}.>"
    everything = ">" in identity.publishes
    publish: dict[str, Any] = {"allow": [">"] if everything else [*identity.publishes, own_inbox]}
    if identity.denied:
        publish["deny"] = list(identity.denied)
    permissions: dict[str, Any] = {
        "publish": publish,
        "subscribe": {"allow": [">"] if everything else [*identity.subscribes, own_inbox]},
    }
    if identity.responds:
        permissions["allow_responses"] = {"max": 1, "expires": REPLY_WITHIN}
    return {"nkey": public_key, "permissions": permissions}


def _core_exports() -> list[dict[str, Any]]:
    written = [{"service": subject, "accounts": [EDGE]} for subject in identities.exported_by_core()]
    mirrored = [{"service": subject, "accounts": [READ]} for subject in _mirror_requests()]
    return [
        *written,
        *mirrored,
        *({"stream": mirror_subject(name), "accounts": [READ]} for name in identities.READABLE),
    ]


def _read_imports() -> list[dict[str, Any]]:
    requests = [
        {"service": {"account": CORE, "subject": subject}, "to": subject.replace("$JS.API", MIRROR_API, 1)}
        for subject in _mirror_requests()
    ]
    return [
        *requests,
        *({"stream": {"account": CORE, "subject": mirror_subject(name)}} for name in identities.READABLE),
    ]


def _mirror_requests() -> list[str]:
    return [
        subject
        for name in identities.READABLE
        for subject in (
            f"$JS.API.CONSUMER.INFO.{name}.{MIRROR_CONSUMER}",
            f"$JS.API.CONSUMER.RESET.{name}.{MIRROR_CONSUMER}",
            f"$JS.ACK.{name}.{MIRROR_CONSUMER}.>",
            f"$JS.FC.{name}.{MIRROR_CONSUMER}.>",
        )
    ]


def _read_exports() -> list[dict[str, Any]]:
    asked = [{"service": subject, "accounts": [EDGE]} for subject in identities.exported_by_read()]
    return [*asked, {"stream": "_INBOX.>", "accounts": [EDGE]}]


def _edge_imports() -> list[dict[str, Any]]:
    written = [
        {"service": {"account": CORE, "subject": subject}, **({"share": True} if subject in SIGNED else {})}
        for subject in identities.exported_by_core()
    ]
    asked = [
        {"service": {"account": READ, "subject": subject}, "to": subject.replace("$JS.API", READ_API, 1)}
        for subject in identities.exported_by_read()
    ]
    return [*written, *asked, {"stream": {"account": READ, "subject": "_INBOX.>"}}]
