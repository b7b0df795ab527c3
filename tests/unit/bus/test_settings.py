from pathlib import Path

import pytest

from podyard.bus import BusSettings, SettingsError


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
