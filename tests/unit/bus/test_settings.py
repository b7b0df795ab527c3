from pathlib import Path

import pytest

from podyard.bus import BusSettings, SettingsError, without_secrets


def test_derived_names():
    assert BusSettings(name="queue-0", service="queue").inbox == "_INBOX.queue"
    assert BusSettings(name="node.agent").inbox == "_INBOX.node%2Eagent"
    assert BusSettings(name="queue", inbox_prefix="_I.q").inbox == "_I.q"
    assert BusSettings(name="queue").service_name == "queue"


@pytest.mark.parametrize("server", ["nats://h:4222", "tls://h", "ws://h:80", "nats://user:pw@h:4222"])
def test_good_servers(server: str):
    BusSettings(servers=(server,)).check()


@pytest.mark.parametrize("servers", [(), ("h:4222",), ("http://h",), ("nats://",), ("nats://h:port",), ("nats://h:0",)])
def test_bad_servers_are_named(servers: tuple[str, ...]):
    with pytest.raises(SettingsError) as caught:
        BusSettings(servers=servers).check()
    assert caught.value.setting == "servers"


@pytest.mark.parametrize(
    "setting", ["user_credentials", "nkey_seed_file", "tls_ca_file", "tls_cert_file", "tls_key_file"]
)
def test_missing_files_are_named(tmp_path: Path, setting: str):
    with pytest.raises(SettingsError, match="there is no file") as caught:
        BusSettings(**{setting: str(tmp_path / "none")}).check()
    assert caught.value.setting == setting


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nats://h:4222", "nats://h:4222"),
        ("nats://me:secret@h:4222", "nats://***@h:4222"),
        ("nats://token-secret@h:4222", "nats://***@h:4222"),
        ("tls://me:se:cr@et/s@h", "tls://***@h"),
        ("nats://a:secret@h1:1, nats://b:secret@h2:2", "nats://***@h1:1, nats://***@h2:2"),
        ("me:secret@h:4222", "***@h:4222"),
        ("cannot reach 'nats://me:secret@h:4222': refused", "cannot reach 'nats://***@h:4222': refused"),
        ("no contact", "no contact"),
        ("", ""),
    ],
)
def test_no_password_is_seen_in_an_address(text: str, shown: str):
    assert without_secrets(text) == shown


@pytest.mark.parametrize("server", ["http://me:secret@h", "nats://me:secret@h:port", "me:secret@h:4222"])
def test_no_password_is_seen_in_a_complaint_about_an_address(server: str):
    with pytest.raises(SettingsError) as caught:
        BusSettings(servers=(server,)).check()
    assert "secret" not in str(caught.value)
