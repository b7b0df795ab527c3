"""What the secure port goes by: read, judged, and told with the file and what to do."""

import socket
import ssl
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from podyard.bus import key_files
from podyard.runtime.certificates import load, names, self_signed
from podyard.runtime.settings import SecureSettings, SettingsError
from tests.support.certificates import DAY, NOW, Authority, key_pem

HERE = "127.0.0.1"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def secure(**given: object) -> SecureSettings:
    return msgspec.convert({"port": 1, "bind_address": HERE, **given}, SecureSettings)


def problems(settings: SecureSettings) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as raised:
        load(settings, NOW.timestamp())
    return raised.value.problems


def test_a_good_pair_is_read(authority: Authority) -> None:
    pair = authority.issue("server", hosts=[HERE], ends=timedelta(hours=1))
    material = load(secure(tls_cert_file=str(pair.certificate), tls_private_key_file=str(pair.key)), NOW.timestamp())
    assert material.context.verify_mode is ssl.CERT_NONE
    assert material.renew_at == int(NOW.timestamp()) + 3600


def test_without_a_pair_one_is_made_that_nobody_else_has() -> None:
    pair = self_signed(["node-1", "10.0.0.5"], NOW)
    own = x509.load_pem_x509_certificate(pair.chain)
    stated = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert stated.get_values_for_type(x509.DNSName) == ["node-1"]
    assert list(map(str, stated.get_values_for_type(x509.IPAddress))) == ["10.0.0.5"]
    assert own.not_valid_after_utc - NOW.replace(microsecond=0) == 365 * DAY
    assert pair.renew_at == (NOW + 335 * DAY).timestamp()
    assert load(secure(), NOW.timestamp()).renew_at > NOW.timestamp()


@pytest.mark.parametrize(
    ("begins", "ends", "hosts", "told"),
    [
        (-2 * DAY, -DAY, [HERE], "it expired at "),
        (DAY, 2 * DAY, [HERE], "it is valid from "),
        (
            -DAY,
            DAY,
            ["elsewhere", "10.9.9.9"],
            f"it is for elsewhere, 10.9.9.9, not for this one ({socket.gethostname()}",
        ),
    ],
)
def test_a_certificate_that_is_of_no_use_is_refused(
    authority: Authority, begins: timedelta, ends: timedelta, hosts: list[str], told: str
) -> None:
    pair = authority.issue("server", hosts=hosts, begins=begins, ends=ends)
    [found] = problems(secure(tls_cert_file=str(pair.certificate), tls_private_key_file=str(pair.key)))
    assert found.startswith(f"secure.tls_cert_file {pair.certificate}: {told}")


def test_a_certificate_may_be_for_a_name_by_which_others_reach_the_host(authority: Authority) -> None:
    pair = authority.issue("server", hosts=["*.podyard.svc"])
    given = {"tls_cert_file": str(pair.certificate), "tls_private_key_file": str(pair.key)}
    load(secure(**given, host_names=["Queue.podyard.svc"]), NOW.timestamp())
    for other in ("podyard.svc", "a.queue.podyard.svc"):
        assert "it is for *.podyard.svc, not for this one" in problems(secure(**given, host_names=[other]))[0]


def test_a_client_certificate_is_for_no_host(authority: Authority) -> None:
    pair = authority.issue("jane")
    assert (
        "it is for no host, not for this one"
        in problems(secure(tls_cert_file=str(pair.certificate), tls_private_key_file=str(pair.key)))[0]
    )


def test_a_certificate_needs_its_key(authority: Authority) -> None:
    pair, other = authority.issue("server", hosts=[HERE]), authority.issue("other", hosts=[HERE])
    certificate, key = str(pair.certificate), str(pair.key)
    assert problems(secure(tls_cert_file=certificate)) == (
        f"secure.tls_cert_file {certificate}: its key is not given; set secure.tls_private_key_file, too",
    )
    assert problems(secure(tls_private_key_file=key)) == (
        f"secure.tls_private_key_file {key}: no certificate is given for it; set secure.tls_cert_file",
    )
    [told] = problems(secure(tls_cert_file=certificate, tls_private_key_file=str(other.key)))
    assert told.startswith(
        f"secure.tls_private_key_file {other.key}: it is the key of another certificate than {certificate}; give"
    )


def test_files_that_hold_something_else_are_refused_all_at_once(authority: Authority, tmp_path: Path) -> None:
    text, passphrase = tmp_path / "text", tmp_path / "locked.key"
    text.write_text("hello")
    text.chmod(0o644)
    passphrase.write_bytes(key_pem(ec.generate_private_key(ec.SECP256R1()), b"hush"))
    found = problems(
        secure(
            tls_cert_file=str(text),
            tls_private_key_file=str(passphrase),
            client_ca_file=str(tmp_path / "missing"),
            token_auth_file=str(text),
        )
    )
    assert found == (
        f"secure.tls_cert_file {text}: there is no certificate in it; expected PEM, -----BEGIN CERTIFICATE-----",
        f"secure.tls_private_key_file {passphrase}: it has a passphrase; give one without, openssl pkey takes it away",
        f"secure.client_ca_file {tmp_path / 'missing'}: No such file or directory",
        f"secure.token_auth_file {text}: its mode is 0644: others may read it; chmod o= takes that away",
    )
    [no_key] = problems(secure(tls_cert_file=str(authority.file), tls_private_key_file=str(text)))
    assert no_key.startswith(f"secure.tls_private_key_file {text}: there is no private key in it")


def test_authorities_that_have_expired_do_not_count(authority: Authority, tmp_path: Path) -> None:
    old = Authority(tmp_path, "old", ends=-DAY)
    both = tmp_path / "both.crt"
    both.write_bytes(old.file.read_bytes() + authority.file.read_bytes())
    context = load(secure(client_ca_file=str(both)), NOW.timestamp()).context
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert len(context.get_ca_certs()) == 1
    assert problems(secure(client_ca_file=str(old.file))) == (
        f"secure.client_ca_file {old.file}: every authority in it has expired; put a new one there",
    )


def test_the_address_is_one() -> None:
    assert problems(secure(bind_address="localhost")) == (
        "secure.bind_address localhost: it is no IP address; 0.0.0.0 are all",
    )


def test_this_host_goes_by_its_name_its_addresses_and_what_was_said() -> None:
    assert names(secure(host_names=["svc"])) == ["svc", socket.gethostname(), HERE, "localhost"]
    everything = names(secure(bind_address="0.0.0.0"))
    assert {socket.gethostname(), "localhost", HERE} <= {*everything}


def test_a_file_that_is_written_anew_is_seen(authority: Authority, tmp_path: Path) -> None:
    link = tmp_path / "ca.crt"
    link.symlink_to(authority.file)
    settings = secure(client_ca_file=str(link), token_auth_file=str(tmp_path / "missing"))
    before = key_files.seen(settings.key_paths)
    assert key_files.seen(settings.key_paths) == before
    link.unlink()
    link.symlink_to(Authority(tmp_path, "new").file)
    assert key_files.seen(settings.key_paths) != before


def test_what_is_wrong_is_told_with_the_section_that_it_stands_in(tmp_path: Path) -> None:
    class Other(SecureSettings, frozen=True, kw_only=True):
        section: ClassVar[str] = "kube_api"

    given = {"tls_cert_file": "a.crt", "client_ca_file": "b.crt", "token_auth_file": str(tmp_path / "c")}
    found = problems(msgspec.convert({"port": 1, "bind_address": HERE, **given}, Other))
    assert [problem.partition(" ")[0] for problem in found] == [
        "kube_api.tls_cert_file",
        "kube_api.client_ca_file",
        "kube_api.token_auth_file",
    ]
    assert found[0].endswith("set kube_api.tls_private_key_file, too")
