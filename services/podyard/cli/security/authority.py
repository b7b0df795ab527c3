"""A small certificate authority: one root, certificates of servers and clients. Keys are ECDSA on P-256."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from podyard.runtime import clock

ROOT_DAYS: Final = 3650
LEAF_DAYS: Final = 825
"""Longest life that common verifiers accept of a server's certificate."""

BACKDATED: Final = timedelta(minutes=5)
"""Clocks of machines differ a little."""


class Issued(NamedTuple):
    """A certificate and its key, both PEM. The key is a secret."""

    certificate: bytes
    key: bytes


class Authority:
    """A root: a new one that lives as long as this object, afterwards only its files know the key; or one of
    such files."""

    def __init__(self, now: datetime | None = None, *, issued: Issued | None = None) -> None:
        """:param issued: the files of one that there is

        :raises ValueError: if they cannot be used
        """
        self._now = now or datetime.fromtimestamp(clock.now(), UTC)
        if issued is None:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._name = _named("Podyard NATS authority")
            self._root = self._self_signed()
        else:
            self._key, self._root = _loaded(issued)
            self._name = self._root.subject

    def _self_signed(self) -> x509.Certificate:
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        return (
            self._builder(self._name, self._key.public_key(), ROOT_DAYS)
            .add_extension(constraints, critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def issued(self) -> Issued:
        """The root itself."""
        return Issued(_pem(self._root), _key_pem(self._key))

    def server(self, hosts: Sequence[str]) -> Issued:
        """For servers reached by these names or addresses. Servers of a cluster are clients of each other."""
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        return self._leaf(hosts[0], (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH), names)

    def client(self, name: str) -> Issued:
        """For one identity."""
        return self._leaf(name, (ExtendedKeyUsageOID.CLIENT_AUTH,), None)

    def _leaf(
        self, name: str, purposes: Sequence[ObjectIdentifier], names: x509.SubjectAlternativeName | None
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_named(name), key.public_key(), LEAF_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return Issued(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - BACKDATED)
            .not_valid_after(self._now + timedelta(days=days))
        )


def _loaded(issued: Issued) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        key = serialization.load_pem_private_key(issued.key, None)
    except (ValueError, TypeError) as error:
        # not its own text: it may say what was in the file
        raise ValueError(f"there is no private key in it that can be read ({type(error).__name__})") from None
    root = x509.load_pem_x509_certificate(issued.certificate)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != root.public_key():
        raise ValueError("it is the key of another authority")
    return key, root


def hosts_of(certificate: bytes) -> list[str]:
    """Names and addresses that a server's certificate is for."""
    found = x509.load_pem_x509_certificate(certificate).extensions
    names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    return [*map(str, names.get_values_for_type(x509.IPAddress)), *names.get_values_for_type(x509.DNSName)]


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
