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


def new_folder(path: Path) -> None:
    """Make a directory of mode 0700, with its parents.

    :raises FileExistsError: if it exists
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER)
