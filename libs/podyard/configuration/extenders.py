"""HTTP extenders: what they need to be made, and what they mean for the profiles.

Sources: pkg/scheduler/scheduler.go (buildExtenders), pkg/scheduler/extender.go (NewHTTPExtender,
makeTransport), client-go/transport/transport.go (TLSConfigFor).
"""

import ssl
import tempfile
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from podyard.configuration.errors import BuildError
from podyard.configuration.reading import NO_DURATION
from podyard.configuration.wire import Extender, Profile, TlsConfig
from podyard.configuration.wire_args import NodeResourcesFitArgs

DEFAULT_TIMEOUT: Final = "5s"


def made(extenders: tuple[Extender, ...]) -> tuple[Extender, ...]:
    """The extenders with their time limits, in the order of the file.

    :raises BuildError: for files or certificates that cannot be used
    """
    for at, extender in enumerate(extenders):
        _check_tls(f"extenders[{at}].tlsConfig", extender.tls_config or TlsConfig(), extender.enable_https)
    return tuple(
        replace(extender, http_timeout=DEFAULT_TIMEOUT) if extender.http_timeout == NO_DURATION else extender
        for extender in extenders
    )


def in_calling_order(extenders: tuple[Extender, ...]) -> tuple[Extender, ...]:
    """Those that may fail come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def without_ignored(profiles: tuple[Profile, ...], extenders: tuple[Extender, ...]) -> tuple[Profile, ...]:
    """The profiles, whose NodeResourcesFit ignores the resources that an extender looks after instead.

    :raises BuildError: if there are such resources and a profile has no arguments of NodeResourcesFit
    """
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return profiles
    return tuple(_ignoring(f"profiles[{at}]", profile, ignored) for at, profile in enumerate(profiles))


def _ignoring(path: str, profile: Profile, ignored: tuple[str, ...]) -> Profile:
    configs = list(profile.plugin_config)
    for at, config in enumerate(configs):
        if isinstance(config.args, NodeResourcesFitArgs):
            configs[at] = replace(config, args=replace(config.args, ignored_resources=ignored))
            return replace(profile, plugin_config=tuple(configs))
    raise BuildError(
        f"an extender has ignoredByScheduler resources ({', '.join(ignored)}), but the profile has no arguments of "
        "NodeResourcesFit; enable that plugin",
        field=path,
    )


# ---- TLS ---------------------------------------------------------------------------------------------------


def _check_tls(path: str, tls: TlsConfig, https: bool) -> None:
    """What the reference refuses when it makes a client; nothing is read unless something of it is used."""
    has_authority = bool(tls.ca_file or tls.ca_data)
    has_certificate = bool(tls.cert_file or tls.cert_data) and bool(tls.key_file or tls.key_data)
    insecure = tls.insecure or (https and not has_authority)
    if not (has_authority or has_certificate or insecure or tls.server_name):
        return
    if has_authority and insecure:
        raise BuildError("a root certificate and insecure exclude each other", field=path)
    authority = _content(f"{path}.caFile", tls.ca_data, tls.ca_file)
    certificate = _content(f"{path}.certFile", tls.cert_data, tls.cert_file)
    key = _content(f"{path}.keyFile", tls.key_data, tls.key_file)
    if has_authority:
        _check_authority(path, authority)
    if has_certificate:
        _check_pair(path, certificate, key)


def _content(path: str, data: bytes, file: str) -> bytes:
    if data or not file:
        return data
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        told = error.strerror if isinstance(error, OSError) else error
        raise BuildError(f"cannot read {file}: {told}", field=path) from error


def _check_authority(path: str, authority: bytes) -> None:
    try:
        ssl.create_default_context(cadata=authority.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise BuildError(f"no root certificate in it: {error}", field=f"{path}.caData") from error


def _check_pair(path: str, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads a pair from files only."""
    with tempfile.TemporaryDirectory(prefix="podyard-") as folder:
        cert_file, key_file = Path(folder, "tls.crt"), Path(folder, "tls.key")
        cert_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert_file, key_file, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise BuildError(f"certificate and key are no pair: {error}", field=path) from error
