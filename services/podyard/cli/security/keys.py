"""Nkeys, and files that only their owner may read."""

import os
import secrets
from pathlib import Path
from typing import Any, Final, cast

import nkeys  # pyright: ignore[reportMissingTypeStubs]

SEED_BYTES: Final = 32
SECRET: Final = 0o600
FOLDER: Final = 0o700


def new_user() -> tuple[bytes, str]:
    """Seed and public key of a new NATS user."""
    untyped = cast("Any", nkeys)
    seed: bytes = untyped.encode_seed(secrets.token_bytes(SEED_BYTES), untyped.PREFIX_BYTE_USER)
    return seed, untyped.from_seed(bytearray(seed)).public_key.decode()


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file of mode 0600; it is never wider, not even for a moment.

    :raises FileExistsError: if there is one
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def public_key(seed: bytes) -> str:
    """The public key of a seed.

    :raises ValueError: if it is none
    """
    untyped = cast("Any", nkeys)
    try:
        return untyped.from_seed(bytearray(seed.strip())).public_key.decode()
    except (nkeys.NkeysError, ValueError, IndexError) as error:
        # not its own text: it may say what was in the file
        raise ValueError(f"it is no nkey seed ({type(error).__name__})") from None


def replace_secret(path: Path, content: bytes) -> None:
    """Put other content in the place of a file, whole or not at all; it stays its owner's alone.

    :raises FileNotFoundError: if there is none
    """
    before = path.stat()
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET)
    with os.fdopen(descriptor, "wb") as file:
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    part.replace(path)


def new_folder(path: Path) -> None:
    """Make a directory of mode 0700, with its parents.

    :raises FileExistsError: if it exists
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER)
