"""Values of Secrets, encrypted before they are stored. Only the api has the key.

A value is `sealed:v1:<key>:<text>`: the first eight digits of the key's SHA-256, then nonce, ciphertext and
tag of AES-256-GCM in base64. What is authenticated besides names the object's uid and the field, so that a
value that somebody copies to another place cannot be read there.
"""

import base64
import binascii
import hashlib
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podyard.objects.documents import Document, mapping
from podyard.objects.errors import ObjectError
from podyard.runtime.settings import SettingsError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_MARK: Final = "sealed:v1:"
_OWNER_ALONE: Final = 0o600
NO_KEY: Final = "this api has no key to encrypt Secrets with: set api.secrets_key_file (PODYARD_API_SECRETS_KEY_FILE)"


class Vault:
    """Seals and opens with one key.

    :param key: 32 bytes; none: it can do neither, and says so
    """

    def __init__(self, key: bytes = b"") -> None:
        self._cipher = AESGCM(key) if key else None
        self._name = hashlib.sha256(key).hexdigest()[:8]

    def seal(self, document: Document) -> Document:
        """The Secret as it is to be stored. `document`, which has its uid, is not changed.

        :raises ObjectError: there is no key
        """
        if self._cipher is None:
            raise ObjectError("", NO_KEY)
        sealed = {}
        for field, value in mapping(document, "data").items():
            nonce = secrets.token_bytes(NONCE_BYTES)
            hidden = self._cipher.encrypt(nonce, value.encode(), _place(document, field))
            sealed[field] = f"{_MARK}{self._name}:{base64.b64encode(nonce + hidden).decode()}"
        return {**document, "data": sealed} if "data" in document else document

    def open(self, document: Document) -> Document:
        """A stored Secret in clear. `document` is not changed.

        :raises ObjectError: it was sealed with another key, or is not what was sealed there
        """
        opened = {field: self._opened(document, field, value) for field, value in mapping(document, "data").items()}
        return {**document, "data": opened} if "data" in document else document

    def _opened(self, document: Document, field: str, value: str) -> str:
        where = f"data[{field}]"
        if self._cipher is None:
            raise ObjectError(where, NO_KEY)
        name, colon, text = value.removeprefix(_MARK).partition(":")
        if not value.startswith(_MARK) or not colon:
            raise ObjectError(where, "is not encrypted as the api does it: delete the Secret, and apply it again")
        if name != self._name:
            detail = (
                f"was encrypted with the key {name}, this api has {self._name}: give it that key, or delete the Secret"
            )
            raise ObjectError(where, detail)
        try:
            raw = base64.b64decode(text, validate=True)
            return self._cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _place(document, field)).decode()
        except (InvalidTag, binascii.Error, ValueError):
            raise ObjectError(where, "is not what was encrypted there: delete the Secret, and apply it again") from None


def _place(document: Document, field: str) -> bytes:
    return f"{mapping(document, 'metadata').get('uid', '')}/data/{field}".encode()


def read_key(file: str) -> bytes:
    """The key in a file, which is made if it is not there: of mode 0600, whole or not at all. No file: no
    key.

    :raises SettingsError: it cannot be read or made, or holds no key
    """
    if not file:
        return b""
    path = Path(file)
    try:
        if not path.exists():
            _make(path)
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise SettingsError((f"api.secrets_key_file: {file}: {error.strerror or error}",)) from None
    except ValueError:
        raise SettingsError((f"api.secrets_key_file: {file} holds no key: 64 hexadecimal digits",)) from None
    if len(key) != KEY_BYTES:
        raise SettingsError((f"api.secrets_key_file: {file} holds {len(key)} bytes, not {KEY_BYTES}",))
    return key


def new_key() -> bytes:
    """What a file of a key holds."""
    return f"{secrets.token_hex(KEY_BYTES)}\n".encode()


def _make(path: Path) -> None:
    """Several apis may start at once: one of them makes it, and all read that one."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ALONE)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(new_key())
            written.flush()
            os.fsync(descriptor)
        try:
            os.link(part, path)
        except FileExistsError:
            return
    finally:
        part.unlink()
