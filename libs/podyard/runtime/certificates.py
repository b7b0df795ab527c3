"""What the secure port goes by: its certificate, whose client certificates it believes, and tokens.

All of it is read and judged together, at the start and whenever a file changes, into a TLS context of its
own: in one that lives, OpenSSL keeps a certificate of another kind of key, and authorities that were removed.
"""

import ipaddress
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podyard.runtime import identities
from podyard.runtime.settings import HttpsSettings, SettingsError

SELF_SIGNED_FOR: Final = timedelta(days=365)
"""As client-go's util/cert/cert.go makes one."""
RENEWED_BEFORE: Final = timedelta(days=30)
BACKDATED: Final = timedelta(minutes=5)
"""Clocks of machines differ a little."""
LARGEST_FILE: Final = 1024 * 1024


class Material(NamedTuple):
    """All that is needed to let somebody in."""

    context: ssl.SSLContext
    tokens: identities.Tokens
    renew_at: float
    """Seconds since 1970, UTC, from when it has to be read, or made, again: its certificate ends."""


def load(settings: HttpsSettings, now: float) -> Material:
    """Read everything and judge it.

    :param now: seconds since 1970, UTC
    :raises SettingsError: with all that is wrong, each with the file and what to do
    """
    problems: list[str] = []
    at = datetime.fromtimestamp(now, UTC)
    section = settings.section
    if not is_address(settings.bind_address):
        raise SettingsError((f"{section}.bind_address {settings.bind_address}: it is no IP address; 0.0.0.0 are all",))
    pair = _given(settings, at, problems)
    authorities = _authorities(f"{section}.client_ca_file", settings.client_ca_file, at, problems)
    tokens = identities.Tokens()
    if settings.token_auth_file:
        try:
            tokens = identities.read_tokens(settings.token_auth_file)
        except identities.TokenFileError as error:
            problems.append(f"{section}.token_auth_file {settings.token_auth_file}: {error}")
    if problems or pair is None:
        raise SettingsError(tuple(problems))
    return Material(_context(pair, authorities), tokens, pair.renew_at)


class _Pair(NamedTuple):
    """A certificate with its key, as PEM."""

    chain: bytes
    key: bytes
    renew_at: float


def _given(settings: HttpsSettings, at: datetime, problems: list[str]) -> _Pair | None:
    certificate, key = settings.tls_cert_file, settings.tls_private_key_file
    named, named_key = f"{settings.section}.tls_cert_file", f"{settings.section}.tls_private_key_file"
    if not certificate and not key:
        return self_signed(names(settings), at)
    if not key:
        problems.append(f"{named} {certificate}: its key is not given; set {named_key}, too")
        return None
    if not certificate:
        problems.append(f"{named_key} {key}: no certificate is given for it; set {named}")
        return None
    chain = _read(named, certificate, problems)
    key_pem = _read(named_key, key, problems)
    found = _certificates(named, certificate, chain, problems)
    private = _private_key(named_key, key, key_pem, problems)
    if found is None or private is None or chain is None or key_pem is None:
        return None
    own = found[0]
    problems += _unusable(settings, own, at)
    if own.public_key() != private.public_key():
        problems.append(
            f"{named_key} {key}: it is the key of another certificate than {certificate}; "
            "give the one that was made with it"
        )
    return _Pair(chain, key_pem, own.not_valid_after_utc.timestamp())


def _read(setting: str, path: str, problems: list[str]) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        problems.append(f"{setting} {path}: {error.strerror or error}")
        return None
    if len(content) > LARGEST_FILE:
        problems.append(f"{setting} {path}: it is larger than {LARGEST_FILE} bytes")
        return None
    return content


def _certificates(setting: str, path: str, content: bytes | None, problems: list[str]) -> list[x509.Certificate] | None:
    if content is None:
        return None
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        problems.append(f"{setting} {path}: there is no certificate in it; expected PEM, -----BEGIN CERTIFICATE-----")
        return None


def _private_key(setting: str, path: str, content: bytes | None, problems: list[str]) -> Any:
    if content is None:
        return None
    try:
        return serialization.load_pem_private_key(content, None)
    except TypeError:
        advice = "it has a passphrase; give one without, openssl pkey takes it away"
    except ValueError:
        advice = "there is no private key in it; expected PEM, -----BEGIN PRIVATE KEY-----"
    problems.append(f"{setting} {path}: {advice}")
    return None


def _unusable(settings: HttpsSettings, own: x509.Certificate, at: datetime) -> Iterator[str]:
    where, hosts = f"{settings.section}.tls_cert_file {settings.tls_cert_file}", names(settings)
    if at > own.not_valid_after_utc:
        yield f"{where}: it expired at {own.not_valid_after_utc:%Y-%m-%d %H:%M} UTC; put a new one there"
    if at < own.not_valid_before_utc:
        yield (
            f"{where}: it is valid from {own.not_valid_before_utc:%Y-%m-%d %H:%M} UTC only; "
            "put another one there, or set this machine's clock"
        )
    stated = _names_of(own)
    if not any(_is_for(name, host) for name in stated for host in hosts):
        yield (
            f"{where}: it is for {', '.join(stated) or 'no host'}, not for this one ({', '.join(hosts)}); give one "
            f"for it, or say by which name others reach this host: {settings.section}.host_names"
        )


def _names_of(certificate: x509.Certificate) -> list[str]:
    """Its subjectAltName; nobody goes by the common name any more (RFC 6125)."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def _is_for(stated: str, host: str) -> bool:
    """Whether a name in a certificate, `*.a.b` perhaps, is that of a host."""
    stated, host = stated.lower(), host.lower()
    first, _, rest = host.partition(".")
    return stated == host or (bool(first and rest) and stated == f"*.{rest}")


def names(settings: HttpsSettings) -> list[str]:
    """What this host may be called by those who connect: as was said, its name, the addresses of the port."""
    found = [*settings.host_names, socket.gethostname()]
    if _is_wildcard(settings.bind_address):
        found += _addresses()
    else:
        found.append(settings.bind_address)
        if ipaddress.ip_address(settings.bind_address).is_loopback:
            found.append("localhost")
    return list(dict.fromkeys(found))


def is_address(text: str) -> bool:
    """Whether it is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_wildcard(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def _addresses() -> list[str]:
    """Of all interfaces, and what the loopback's are called."""
    import psutil

    every = [one.address for found in psutil.net_if_addrs().values() for one in found if one.family in _INTERNET]
    return ["localhost", *(address.partition("%")[0] for address in every)]


_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


def _authorities(setting: str, path: str, at: datetime, problems: list[str]) -> str:
    """As PEM; those that have expired are left out. Empty: nobody has to be believed."""
    if not path:
        return ""
    found = _certificates(setting, path, _read(setting, path, problems), problems)
    if found is None:
        return ""
    valid = [one for one in found if at <= one.not_valid_after_utc]
    if not valid:
        problems.append(f"{setting} {path}: every authority in it has expired; put a new one there")
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in valid)


def _context(pair: _Pair, authorities: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # who comes again is asked again: a ticket would stand for a certificate that has ended
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    # OpenSSL reads files only; these are in memory, so that what was judged is what is used
    descriptor = os.memfd_create("podyard-tls", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pair.chain.rstrip() + b"\n" + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    if authorities:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=authorities)
    return context


def self_signed(hosts: Sequence[str], at: datetime) -> _Pair:
    """A certificate for `hosts` with a key that nobody else ever sees, for who does not ask who we are."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - BACKDATED)
        .not_valid_after(at + SELF_SIGNED_FOR)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        (at + SELF_SIGNED_FOR - RENEWED_BEFORE).timestamp(),
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
