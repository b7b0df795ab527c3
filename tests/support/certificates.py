"""An authority of the tests: certificates of servers and clients, valid, expired, or not valid yet."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


class Issued(NamedTuple):
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Issues into a folder."""

    def __init__(self, folder: Path, name: str = "authority", *, ends: timedelta = 10 * DAY) -> None:
        self._folder = folder
        self._name = _name(name, ())
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.crt"
        root = (
            _builder(self._name, self._name, self._key.public_key(), begins=-20 * DAY, ends=ends)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_signs(), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.file.write_bytes(root.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        groups: Sequence[str] = (),
        *,
        hosts: Sequence[str] = (),
        begins: timedelta = -DAY,
        ends: timedelta = DAY,
    ) -> Issued:
        """A client's, or a server's if it is for hosts; `begins` and `ends` count from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_name(name, groups), self._name, key.public_key(), begins=begins, ends=ends)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        issued = Issued(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        issued.certificate.write_bytes(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        issued.key.write_bytes(key_pem(key))
        return issued


def key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    """A key as it stands in a file."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption(),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + begins)
        .not_valid_after(NOW + ends)
    )


def _signs() -> x509.KeyUsage:
    """Verifiers that are strict want it (Python's own, from 3.13 on)."""
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _name(name: str, groups: Sequence[str]) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
