"""Identities that a directory has not got, as it was made by an older release: they are added, and the
servers' configurations are written anew by the table of today."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podyard.cli.security import accounts, directory, identities, keys, kube_files, rotation
from podyard.cli.security.authority import Authority
from podyard.cli.security.directory import API, NAMES, SEED
from podyard.cli.security.identities import Identity


def missing(place: Path) -> list[Identity]:
    """Identities of the table that nobody lets in, in its order."""
    known = set(_names(place).values())
    return [one for one in identities.all_identities(directory.agents(place)) if one.name not in known]


def complete(place: Path, signer: Callable[[], Authority], kube_url: str = kube_files.URL) -> list[str]:
    """Add what is missing; the names of what was added. May be repeated.

    :param signer: the authority, asked for if something is to be signed
    :param kube_url: where people reach the Kubernetes API
    :raises InputError: the authority's key is not there
    """
    wanted = missing(place)
    if not wanted:
        return []
    authority = signer()
    names = _names(place)
    for identity in wanted:
        folder = place / "identities" / identity.name
        for left in folder.glob("*"):  # of an attempt that was interrupted
            left.unlink()
        names[directory.write_identity(place, identity, authority)] = identity.name
        if identity.name == kube_files.KUBE_API:
            kube_files.make(place, authority, kube_url)
            _give(place / "identities" / identities.PERSON / kube_files.KUBECONFIG, place)
        for path in (folder, *folder.iterdir()):
            _give(path, place)
    rotation.configure(place, lambda made: _accounts(place, names))
    keys.replace_secret(place / "identities" / API / NAMES, json.dumps(names, indent=2).encode())
    return [identity.name for identity in wanted]


def _accounts(place: Path, names: dict[str, str]) -> dict[str, Any]:
    """All accounts, with every key that is let in; of an identity whose key is being replaced there are
    two."""
    keys_of: dict[str, list[str]] = {}
    for key, name in names.items():
        keys_of.setdefault(name, []).append(key)
    known = [one for one in identities.all_identities(directory.agents(place)) if one.name in keys_of]
    made = accounts.accounts(known, {name: found[0] for name, found in keys_of.items()})
    for first, *more in keys_of.values():
        for key in more:
            made = accounts.with_key(made, first, key)
    return made


def _names(place: Path) -> dict[str, str]:
    """Who is let in: names by public key."""
    return json.loads((place / "identities" / API / NAMES).read_bytes())


def _give(path: Path, place: Path) -> None:
    """To whom the other identities belong."""
    other = (place / "identities" / API / SEED).stat()
    found = path.stat()
    if (found.st_uid, found.st_gid) != (other.st_uid, other.st_gid):
        os.chown(path, other.st_uid, other.st_gid)
