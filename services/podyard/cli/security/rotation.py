"""One identity's new key, step by step, as files. Nothing here speaks with a server.

    rotation/<name>/state.json        which step is done, and the two public keys
                    old/, new/        nkey.seed, tls.crt, tls.key

    made      the new key and certificate are in `new/`, those in use in `old/`
    known     the servers' configurations let both keys in, and the api knows both
    replaced  the identity's own files are the new ones
    gone      the configurations let only the new key in; the folder is removed

Each step may be repeated: it was interrupted, or not all of it was done. So a rotation that was interrupted
goes on where its folder says it is.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from podyard.bus.settings import BusSettings
from podyard.cli.errors import InputError
from podyard.cli.security import accounts, directory, keys
from podyard.cli.security.authority import Authority, Issued, hosts_of
from podyard.cli.security.directory import ACCOUNTS, API, NAMES, SEED

T = TypeVar("T")
Step: TypeAlias = Literal["made", "known", "replaced"]
Which: TypeAlias = Literal["old", "new"]
FOLDER: Final = "rotation"
STATE: Final = "state.json"
FILES: Final = (SEED, "tls.crt", "tls.key")
"""In the order in which they are replaced: a certificate without its key is waited for by who reads it."""

SERVER: Final = "server"
"""Named for the servers' own certificate."""


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """How far one identity is."""

    name: str
    step: Step
    """The last one that is done."""
    old_key: str
    """Public, as are all keys here."""
    new_key: str


def authority(place: Path, key_file: str = "") -> Authority:
    """The authority that made the directory's certificates.

    :param key_file: where its key is kept; empty: where `init` left it
    :raises InputError: if the key is not there, or of another authority
    """
    key = Path(key_file).expanduser() if key_file else place / "ca" / "ca.key"
    try:
        return Authority(issued=Issued((place / "ca" / "ca.crt").read_bytes(), key.read_bytes()))
    except OSError as error:
        raise InputError(
            f"{error.filename}: {error.strerror}",
            "new certificates need the authority's key: put it back, or name it with --ca-key FILE",
        ) from error
    except ValueError as error:
        raise InputError(f"{key}: {error}", "name the right one with --ca-key FILE") from error


def under_way(place: Path) -> list[str]:
    """Identities whose rotation was begun, sorted."""
    return sorted(path.parent.name for path in (place / FOLDER).glob(f"*/{STATE}"))


def load(place: Path, name: str) -> Rotation | None:
    """How far it is; None if none was begun.

    :raises InputError: if what is there cannot be read
    """
    return read_state(place / FOLDER / name / STATE, Rotation)


def read_state(path: Path, of: type[T]) -> T | None:
    """What a file says of how far something is; None if there is none.

    :raises InputError: if it cannot be read
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", "nothing was changed") from error


def begin(place: Path, name: str, signer: Authority) -> Rotation:
    """Make the new key and certificate beside the old ones."""
    identity = place / "identities" / name
    try:
        old: dict[str, bytes] = {file: (identity / file).read_bytes() for file in FILES}
        old_key = keys.public_key(old[SEED])
    except (OSError, ValueError) as error:
        raise InputError(
            f"{identity}: the files in use cannot be read: {error}", f"there are {', '.join(directory.names(place))}"
        ) from error
    seed, new_key = keys.new_user()
    issued = signer.client(name)
    made = Rotation(name=name, step="made", old_key=old_key, new_key=new_key)
    new: dict[str, bytes] = dict(zip(FILES, (seed, issued.certificate, issued.key), strict=True))
    write_begun(place, name, made, {"old": old, "new": new})
    return made


def write_begun(place: Path, name: str, state: msgspec.Struct, kept: Mapping[Which, Mapping[str, bytes]]) -> None:
    """Write what is kept of a rotation while it is under way, whole or not at all.

    :param kept: files by folder and name
    """
    building = place / FOLDER / f".{name}"
    shutil.rmtree(building, ignore_errors=True)
    _ensure_folder(place / FOLDER)
    keys.new_folder(building)
    for folder, contents in kept.items():
        keys.new_folder(building / folder)
        for file, content in contents.items():
            keys.write_secret(building / folder / file, content)
    keys.write_secret(building / STATE, msgspec.json.encode(state))
    building.rename(place / FOLDER / name)


def done(place: Path, rotation: Rotation, step: Step) -> Rotation:
    """Note that a step is done."""
    reached = msgspec.structs.replace(rotation, step=step)
    keys.replace_secret(place / FOLDER / rotation.name / STATE, msgspec.json.encode(reached))
    return reached


def let_both_in(place: Path, rotation: Rotation) -> None:
    """Both keys into the servers' configurations; before that the api learns whose the new one is.

    :raises InputError: if the configurations do not know the old one
    """
    _rename(place, lambda names: {**names, rotation.new_key: rotation.name})
    try:
        configure(place, lambda made: accounts.with_key(made, rotation.old_key, rotation.new_key))
    except KeyError as error:
        raise InputError(
            f"{place}/server: the configurations do not know the key that {rotation.name} has now",
            "are server/ and identities/ of one `podyard security init`?",
        ) from error


def replace_files(place: Path, rotation: Rotation) -> None:
    """The identity's own files become the new ones."""
    for file in FILES:
        content = (place / FOLDER / rotation.name / "new" / file).read_bytes()
        keys.replace_secret(place / "identities" / rotation.name / file, content)


def let_only_new_in(place: Path, rotation: Rotation) -> None:
    """The old key out of the servers' configurations, and of what the api knows."""
    configure(place, lambda made: accounts.without_key(made, rotation.old_key))
    _rename(place, lambda names: {key: name for key, name in names.items() if key != rotation.old_key})


def finish(place: Path, rotation: Rotation) -> None:
    """Remove what was kept for the rotation, the old key with it."""
    remove(place, rotation.name)


def remove(place: Path, name: str) -> None:
    """Remove what `write_begun` wrote."""
    shutil.rmtree(place / FOLDER / name)
    if not any((place / FOLDER).iterdir()):
        (place / FOLDER).rmdir()


def login(place: Path, rotation: Rotation, which: Which, server: str) -> BusSettings:
    """How a connection to one server uses the old key, or the new one."""
    identity = directory.named(rotation.name, directory.agents(place))
    kept = place / FOLDER / rotation.name / which
    return msgspec.structs.replace(
        directory.bus_settings(place, identity, (server,)),
        nkey_seed_file=str(kept / SEED),
        tls_cert_file=str(kept / "tls.crt"),
        tls_key_file=str(kept / "tls.key"),
    )


def new_server_certificate(place: Path, signer: Authority) -> bytes:
    """Another key and certificate of the servers, for the same names; returns the certificate."""
    folder = place / SERVER
    issued = signer.server(hosts_of((folder / "server.crt").read_bytes()))
    keys.replace_secret(folder / "server.key", issued.key)
    keys.replace_secret(folder / "server.crt", issued.certificate)
    return issued.certificate


def configure(place: Path, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    """Change the accounts in every configuration of the servers."""
    folder = place / SERVER
    path = folder / ACCOUNTS
    changed = change(json.loads(path.read_bytes()))
    for configuration in sorted(folder.glob("*.conf")):
        whole = {**json.loads(configuration.read_bytes()), "accounts": changed}
        keys.replace_secret(configuration, json.dumps(whole, indent=2).encode())
    keys.replace_secret(path, json.dumps(changed, indent=2).encode())


def _rename(place: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    path = place / "identities" / API / NAMES
    keys.replace_secret(path, json.dumps(change(json.loads(path.read_bytes())), indent=2).encode())


def _ensure_folder(path: Path) -> None:
    if not path.exists():
        keys.new_folder(path)
