"""The directory that `podyard security init` writes, and how others find their way in it.

    ca/ca.crt, ca.key                 the authority; `ca.key` only makes further certificates: take it away
    server/                           for the servers only: key, certificates, configurations
        server.crt, server.key, ca.crt
        accounts.json                 who may do what (public keys only)
        nats.conf                     a server that stands alone
        cluster-<host>.conf           one of a cluster
    identities/<name>/                for that identity only
        nkey.seed, tls.crt, tls.key, ca.crt
        nodes.json                    of an agent of its own: its nodes
        identities.json               of the api: who has which public key
        secrets.key                   of the api: by which it encrypts values of Secrets
        https.crt, https.key, tokens.csv, kubeconfig     of kube_api and of people (`kube_files`)
    rotation/<name>/                  while that identity's key is replaced (`rotation`)
    unfinished                        while it is made; what is there then, nobody uses

Files are of mode 0600, directories 0700. `init` overwrites nothing; `rotate` replaces files whole.
"""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from podyard.api.vault import new_key
from podyard.bus.settings import BusSettings
from podyard.cli.errors import InputError
from podyard.cli.security import accounts, identities, keys, kube_files
from podyard.cli.security.authority import Authority, Issued
from podyard.cli.security.identities import Identity

ACCOUNTS: Final = "accounts.json"
ALWAYS: Final = ("127.0.0.1", "localhost", "::1", "nats")
"""Names of every server: this machine, and the one in docker-compose.yml."""

MOUNTED: Final = "/etc/nats"
STORE: Final = "/data"
SEED: Final = "nkey.seed"
NODES: Final = "nodes.json"
"""Beside an agent's key: the nodes that it plays."""
UNFINISHED: Final = "unfinished"
API: Final = "api"
SECRETS_KEY: Final = "secrets.key"
"""Beside the api's key: what it encrypts Secrets with. It is not rotated: what is stored is read by it."""
NAMES: Final = "identities.json"
"""Beside the api's key: names of all identities by their public keys, so that it knows who asks."""


class Owner(NamedTuple):
    """Numbers of a user and a group."""

    uid: int
    gid: int


def create(
    directory: Path,
    known: Sequence[Identity],
    *,
    hosts: Sequence[str] = (),
    cluster: Sequence[str] = (),
    owner: Owner | None = None,
    kube_url: str = kube_files.URL,
) -> None:
    """Make keys, certificates and configurations, in a new directory or in one that holds no file: volumes
    may be mounted in it already. What an earlier attempt did not finish is made anew.

    :param hosts: further names and addresses of servers
    :param cluster: names of the servers of a cluster; none: no such configurations
    :param owner: whose the folders of the identities become; none: who makes them. `ca` and `server` stay the
        maker's
    :param kube_url: where people reach the Kubernetes API
    :raises InputError: if something else is there, or the maker may not give files away
    """
    if directory.is_symlink():
        raise InputError(f"{directory} is a link", "name the directory itself")
    unfinished = directory / UNFINISHED
    if unfinished.is_file():
        _empty(directory)
    elif directory.exists() and (not directory.is_dir() or _files(directory)):
        raise InputError(
            f"{directory} exists, and holds files",
            "nothing is overwritten: name another directory, or remove this one",
        )
    _ensure_folder(directory)
    keys.write_secret(unfinished, b"")
    try:
        _fill(directory, known, tuple(dict.fromkeys((*ALWAYS, *hosts, *cluster))), cluster, kube_url)
        if owner is not None:
            _give(directory / "identities", owner)
    except BaseException:
        _empty(directory)
        raise
    unfinished.unlink()


def is_made(directory: Path) -> bool:
    """Whether `create` did all of its work there."""
    return (directory / "server" / ACCOUNTS).is_file() and not (directory / UNFINISHED).exists()


def check_owner(directory: Path, owner: Owner) -> None:
    """That the identities' files are a user's.

    :raises InputError: naming the first that is not
    """
    for path in sorted((directory / "identities").glob("*/*")):
        found = path.stat()
        if (found.st_uid, found.st_gid) != owner:
            raise InputError(
                f"{path} belongs to user {found.st_uid}, group {found.st_gid}: who uses it, {owner.uid}, cannot read it",
                f"as root: chown -R {owner.uid}:{owner.gid} {directory / 'identities'}",
            )


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()]


def _empty(directory: Path) -> None:
    """Remove what `create` has written so far; folders stay, and the mark stays to the last."""
    for part in ("ca", "server", "identities"):
        for path in _files(directory / part):
            path.unlink()
    (directory / UNFINISHED).unlink(missing_ok=True)


def _give(folder: Path, owner: Owner) -> None:
    """What is in the folders of the identities, and the folders, to another user."""
    try:
        for path in sorted(folder.glob("*/*")) + sorted(folder.iterdir()):
            os.chown(path, *owner)
    except PermissionError as error:
        raise InputError(
            f"{error.filename} cannot be given to user {owner.uid}: {error.strerror}", "--owner needs root"
        ) from error


def _fill(
    directory: Path, known: Sequence[Identity], hosts: Sequence[str], cluster: Sequence[str], kube_url: str
) -> None:
    authority = Authority()
    root = authority.issued
    _write_pair(directory / "ca", "ca", root)
    public_keys = {identity.name: write_identity(directory, identity, authority) for identity in known}
    if {kube_files.KUBE_API, identities.PERSON} <= public_keys.keys():
        kube_files.make(directory, authority, kube_url)
    folder = directory / "server"
    _write_pair(folder, "server", authority.server(hosts))
    keys.write_secret(folder / "ca.crt", root.certificate)
    made = accounts.accounts(known, public_keys)
    configurations = {"nats.conf": accounts.single(made, MOUNTED, STORE)}
    for one in accounts.clustered(made, MOUNTED, STORE, cluster):
        configurations[f"cluster-{one['server_name']}.conf"] = one
    names = {public: name for name, public in public_keys.items()}
    keys.write_secret(directory / "identities" / API / NAMES, json.dumps(names, indent=2).encode())
    keys.write_secret(directory / "identities" / API / SECRETS_KEY, new_key())
    for name, configuration in {**configurations, ACCOUNTS: made}.items():
        keys.write_secret(folder / name, json.dumps(configuration, indent=2).encode())


def write_identity(directory: Path, identity: Identity, authority: Authority) -> str:
    """Write one identity's files; returns its public key."""
    folder = directory / "identities" / identity.name
    _write_pair(folder, "tls", authority.client(identity.name))
    if identity.nodes:
        keys.write_secret(folder / NODES, json.dumps(identity.nodes).encode())
    keys.write_secret(folder / "ca.crt", authority.issued.certificate)
    seed, public = keys.new_user()
    keys.write_secret(folder / SEED, seed)
    return public


def _write_pair(folder: Path, name: str, issued: Issued) -> None:
    for parent in (folder.parent, folder):
        _ensure_folder(parent)
    keys.write_secret(folder / f"{name}.crt", issued.certificate)
    keys.write_secret(folder / f"{name}.key", issued.key)


def _ensure_folder(folder: Path) -> None:
    """Make it, or make the one that is there its owner's alone."""
    if not folder.exists():
        keys.new_folder(folder)
    elif stat.S_IMODE(folder.stat().st_mode) != keys.FOLDER:
        folder.chmod(keys.FOLDER)


def server_settings(directory: Path) -> dict[str, Any]:
    """Settings of an embedded server.

    :raises InputError: if the directory is none of ours
    """
    folder = checked(directory) / "server"
    return accounts.server(json.loads((folder / ACCOUNTS).read_bytes()), str(folder))


def server_files(directory: Path) -> list[str]:
    """What an embedded server goes by: another one after a rotation."""
    folder = directory / "server"
    return [str(folder / name) for name in (ACCOUNTS, "server.crt", "server.key", "ca.crt")]


def environment(directory: Path, identity: Identity) -> dict[str, str]:
    """Variables by which a process becomes `identity`: paths and subjects, no secret.

    The directory may hold no more than that identity, as who uses it gets it.

    :raises InputError: if the directory does not have it
    """
    folder = directory.absolute() / "identities" / identity.name
    if not folder.is_dir():
        checked(directory)
        raise InputError(f"{directory} has no identity {identity.name!r}", f"there are {', '.join(names(directory))}")
    return {
        "PODYARD_NATS_NKEY_SEED_FILE": str(folder / SEED),
        "PODYARD_NATS_TLS_CA_FILE": str(folder / "ca.crt"),
        "PODYARD_NATS_TLS_CERT_FILE": str(folder / "tls.crt"),
        "PODYARD_NATS_TLS_KEY_FILE": str(folder / "tls.key"),
        "PODYARD_NATS_INBOX_PREFIX": identity.inbox,
        "PODYARD_NATS_JETSTREAM_PREFIX": identity.jetstream,
        "PODYARD_NATS_ENSURE_STREAMS": "false",
        **({"PODYARD_NODE_AGENT_NODES": ",".join(identity.nodes)} if identity.nodes else {}),
        **({"PODYARD_API_IDENTITIES_FILE": str(folder / NAMES)} if (folder / NAMES).is_file() else {}),
        **(kube_files.settings(folder) if (folder / kube_files.TOKENS).is_file() else {}),
        **({"PODYARD_API_SECRETS_KEY_FILE": str(folder / SECRETS_KEY)} if (folder / SECRETS_KEY).is_file() else {}),
    }


def bus_settings(directory: Path, identity: Identity, servers: tuple[str, ...]) -> BusSettings:
    """How a connection in this process becomes `identity`."""
    given = environment(directory, identity)
    return BusSettings(
        servers=servers,
        name=identity.name,
        service=identity.service or identity.name,
        inbox_prefix=identity.inbox,
        jetstream_prefix=identity.jetstream,
        nkey_seed_file=given["PODYARD_NATS_NKEY_SEED_FILE"],
        tls_ca_file=given["PODYARD_NATS_TLS_CA_FILE"],
        tls_cert_file=given["PODYARD_NATS_TLS_CERT_FILE"],
        tls_key_file=given["PODYARD_NATS_TLS_KEY_FILE"],
    )


def named(name: str, agents: Mapping[str, Sequence[str]] | None = None) -> Identity:
    """An identity of the table.

    :raises InputError: if there is none of that name
    """
    known = {identity.name: identity for identity in identities.all_identities(agents)}
    if name not in known:
        raise InputError(f"no identity is called {name!r}", f"there are {', '.join(known)}")
    return known[name]


def agents(directory: Path) -> dict[str, list[str]]:
    """The agents of their own that a directory has: name -> nodes."""
    places = sorted(directory.glob(f"identities/agent-*/{NODES}"))
    return {place.parent.name.removeprefix("agent-"): json.loads(place.read_bytes()) for place in places}


def names(directory: Path) -> list[str]:
    """Identities that a directory has, sorted."""
    return sorted(path.name for path in (directory / "identities").iterdir())


def checked(directory: Path) -> Path:
    """The directory, absolute.

    :raises InputError: if it is none of ours
    """
    if not is_made(directory):
        raise InputError(f"{directory} was not made by `podyard security init`", "make one: podyard security init DIR")
    return directory.absolute()
