"""The authority replaced by another one, as files: who believes whom, and what was made by which.

    rotation/ca/state.json      how far it is
    rotation/ca/old, new        ca.crt; of the new one ca.key; tls.crt, tls.key: a certificate that it made,
                                to see whether a server believes it

    made      the new one lies beside the old one, which made all that is in use
    believed  every `ca.crt` holds both: whoever shows a certificate of either is believed
              then keys and certificates of all identities are replaced (`rotation`), and the servers' own
    gone      every `ca.crt` holds the new one alone; the folder is removed

The key of the old one is not needed. Each step may be repeated.
"""

from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from podyard.bus.settings import BusSettings
from podyard.cli.errors import InputError
from podyard.cli.security import directory, identities, keys, rotation
from podyard.cli.security.authority import Authority, Issued
from podyard.cli.security.rotation import SERVER, STATE, Which

AUTHORITY: Final = "ca"
"""How the authority is called where identities are: no identity has this name."""

VISITOR: Final = "visitor"
"""Whom the new one's first certificate names: nobody who has a key."""

Step: TypeAlias = Literal["made", "believed"]


class Succession(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is."""

    step: Step
    """The last one that is done."""


def folder(place: Path) -> Path:
    """Where it is kept meanwhile."""
    return place / rotation.FOLDER / AUTHORITY


def load(place: Path) -> Succession | None:
    """How far it is; None if none was begun.

    :raises InputError: if what is there cannot be read
    """
    return rotation.read_state(folder(place) / STATE, Succession)


def begin(place: Path) -> Succession:
    """Make the new authority, and keep what shows who believes the old one.

    :raises InputError: if the files in use cannot be read
    """
    in_use = place / "identities" / identities.OPERATOR
    try:
        old = {file: (in_use / file).read_bytes() for file in ("tls.crt", "tls.key")}
        old["ca.crt"] = (place / "ca" / "ca.crt").read_bytes()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", "nothing was changed") from error
    successor = Authority()
    visitor = successor.client(VISITOR)
    new = {
        "ca.crt": successor.issued.certificate,
        "ca.key": successor.issued.key,
        "tls.crt": visitor.certificate,
        "tls.key": visitor.key,
    }
    made = Succession(step="made")
    rotation.write_begun(place, AUTHORITY, made, {"old": old, "new": new})
    return made


def done(place: Path, step: Step) -> Succession:
    """Note that a step is done."""
    reached = Succession(step=step)
    keys.replace_secret(folder(place) / STATE, msgspec.json.encode(reached))
    return reached


def believe_both(place: Path) -> None:
    """Servers and identities believe the old one and the new one."""
    _believed(place, _kept(place, "old", "ca.crt") + _kept(place, "new", "ca.crt"))


def believe_only_new(place: Path) -> None:
    """The old one out of what servers and identities believe."""
    _believed(place, _kept(place, "new", "ca.crt"))


def signer(place: Path) -> Authority:
    """The new one."""
    return Authority(issued=Issued(_kept(place, "new", "ca.crt"), _kept(place, "new", "ca.key")))


def is_renewed(place: Path, name: str) -> bool:
    """Whether the certificate that an identity has in use was made by the new one, and its rotation is
    over."""
    used = x509.load_pem_x509_certificate((place / "identities" / name / "tls.crt").read_bytes())
    try:
        used.verify_directly_issued_by(x509.load_pem_x509_certificate(_kept(place, "new", "ca.crt")))
    except (InvalidSignature, ValueError):
        return False
    return rotation.load(place, name) is None


def finish(place: Path) -> None:
    """The new one takes the place of the old one; what was kept is removed."""
    for file in ("ca.key", "ca.crt"):
        path, content = place / "ca" / file, _kept(place, "new", file)
        if path.exists():
            keys.replace_secret(path, content)
        else:
            keys.write_secret(path, content)
    rotation.remove(place, AUTHORITY)


def login(place: Path, which: Which, server: str) -> BusSettings:
    """How somebody without a key comes to one server, with a certificate of the old authority or of the new
    one."""
    known = directory.bus_settings(place, directory.named(identities.OPERATOR), (server,))
    kept = folder(place) / which
    return msgspec.structs.replace(
        known, nkey_seed_file="", tls_cert_file=str(kept / "tls.crt"), tls_key_file=str(kept / "tls.key")
    )


def refuse_while_under_way(place: Path) -> None:
    """Single keys are not replaced meanwhile: they would be signed by the one that goes.

    :raises InputError: if a replacement of the authority was begun
    """
    if load(place) is not None:
        raise InputError(
            f"the authority of {place} is being replaced",
            f"go on with that first: podyard security rotate {place} --ca",
        )


def _believed(place: Path, certificates: bytes) -> None:
    for path in (place / SERVER / "ca.crt", *sorted((place / "identities").glob("*/ca.crt"))):
        keys.replace_secret(path, certificates)


def _kept(place: Path, which: Which, file: str) -> bytes:
    return (folder(place) / which / file).read_bytes()
