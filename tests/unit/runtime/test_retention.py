"""How long what is over is kept: settings that reach the streams and the messages."""

from podyard.bus.bootstrap import config_of
from podyard.bus.outgoing import Outgoing, head_of
from podyard.proto import streams
from podyard.runtime.settings import RetentionSettings, load_settings
from podyard.workloads.settings import WorkloadsSettings


def test_without_settings_streams_are_as_they_always_were() -> None:
    assert RetentionSettings().specs == streams.ALL_STREAMS


def test_ages_sizes_and_message_ids_of_the_settings_are_the_streams() -> None:
    environment = {
        "PODYARD_RETENTION_REQUEUES_S": "100",
        "PODYARD_RETENTION_REQUEUES_MIB": "7",
        "PODYARD_RETENTION_DUPLICATES_S": "12",
    }
    process, _ = load_settings(WorkloadsSettings, "workloads", environment=environment)
    found = {spec.name: config_of(spec) for spec in process.retention.specs}
    requeues = found["REQUEUES"]
    assert (requeues["max_age"], requeues["max_bytes"]) == (100 * 10**9, 7 * 2**20)
    assert {config["duplicate_window"] for config in found.values()} == {12 * 10**9}
    assert found["CLUSTER"]["max_age"] == 0


def test_what_expires_is_kept_as_long_as_markers() -> None:
    marker = Outgoing("s", b"", expires=True)
    assert b"Nats-TTL: 600s\r\n" in head_of(marker)
    assert b"Nats-TTL: 60s\r\n" in head_of(marker, marker_ttl_s=60)
    assert b"Nats-TTL" not in head_of(Outgoing("s", b""), marker_ttl_s=60)
