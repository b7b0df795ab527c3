"""Secrets: what they hold is nowhere in clear, and shown to those who may see it."""

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from podyard.api.vault import Vault, new_key, read_key
from podyard.bus import Bus
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import RevealReply, RevealRequest
from podyard.runtime.settings import SettingsError
from tests.contract.api.conftest import Api, outcomes, ready, stored
from tests.support.objects import Document
from tests.support.stored import version
from tests.support.waiting import eventually

PLANTED = "hush-hush-value"
ENCODED = base64.b64encode(PLANTED.encode()).decode()


def secret(name: str = "db", **more: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": ENCODED}, **more}


def shows(text: bytes) -> bool:
    """Whether the planted value is in it, as it is or in base64 (of which the last letters depend on what
    follows)."""
    return PLANTED.encode() in text or ENCODED[:-4].encode() in text


async def revealed(api: Api, *names: str) -> RevealReply:
    refs = tuple(ObjectRef(resource="secrets", name=name) for name in names)
    request = codec.encode(RevealRequest(secrets=refs, who="ann"))
    return codec.decode(RevealReply, (await api.bus.request(subjects.OBJECTS_REVEAL, request)).payload)


async def test_a_value_is_stored_encrypted_and_shown_to_who_asks(bus: Bus, tmp_path: Path) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        assert (
            outcomes(await api.apply(secret(), secret("other", data={}, stringData={"a": PLANTED}))) == ["created"] * 2
        )
        there = [(await stored(bus, "secrets", name)).payload for name in ("db", "other")]
        assert [shows(payload) for payload in there] == [False, False]
        reply = await revealed(api, "db", "other", "none")
        assert [(one.name, one.data, one.fault) for one in reply.secrets] == [
            ("db", {"password": ENCODED}, ""),
            ("other", {"a": ENCODED}, ""),
            ("none", {}, "not found"),
        ]
        assert outcomes(await api.apply(secret(type="Opaque"))) == ["unchanged"]
        assert outcomes(await api.apply(secret(data={"password": "eA=="}))) == ["configured"]
        assert (await revealed(api, "db")).secrets[0].data == {"password": "eA=="}


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    key = read_key(str(file))
    assert (read_key(str(file)), len(key), stat.S_IMODE(file.stat().st_mode)) == (key, 32, 0o600)
    assert list(tmp_path.iterdir()) == [file]
    file.write_text("no key")
    with pytest.raises(SettingsError, match="holds no key") as caught:
        read_key(str(file))
    assert "no key\n" not in str(caught.value)
    file.write_bytes(new_key()[:10])
    with pytest.raises(SettingsError, match="holds 5 bytes"):
        read_key(str(file))
    with pytest.raises(SettingsError, match="No such file or directory"):
        read_key(str(tmp_path / "nowhere" / "secrets.key"))


async def test_an_api_that_starts_again_reads_what_the_one_before_it_wrote(bus: Bus, tmp_path: Path) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        await api.apply(secret())
    async with ready(bus, tmp_path / "secrets.key") as api:
        assert (await revealed(api, "db")).secrets[0].data == {"password": ENCODED}
        assert outcomes(await api.apply(secret(type="Opaque"))) == ["unchanged"]


async def test_another_key_is_named_and_nothing_is_overwritten(bus: Bus, tmp_path: Path) -> None:
    other = secret()
    other["metadata"] |= {"namespace": "default", "uid": "u1"}
    ack = await bus.publish(version("secrets", Vault(bytes(32)).seal(other)))
    async with ready(bus, tmp_path / "secrets.key") as api:
        await api.reached(ack.sequence)
        assert "was encrypted with the key" in (await revealed(api, "db")).secrets[0].fault
        refused = await api.apply(secret(data={"password": "eA=="}))
        assert "give it that key, or delete the Secret" in refused.results[0].errors[0].detail
        assert outcomes(await api.delete(ObjectRef(resource="secrets", name="db"))) == ["deleted"]


async def test_without_a_key_secrets_are_refused_with_what_to_set(api: Api) -> None:
    reply = await api.apply(secret())
    assert "set api.secrets_key_file" in reply.results[0].message
    assert not shows(codec.encode(reply))


def test_a_value_cannot_be_moved_to_another_secret() -> None:
    vault = Vault(bytes(32))
    one, two = ({"metadata": {"uid": uid}, "data": {"a": ENCODED, "b": ENCODED}} for uid in ("u1", "u2"))
    sealed = vault.seal(one)
    assert vault.open(sealed) == one
    for moved in ({**two, "data": sealed["data"]}, {**one, "data": {"b": sealed["data"]["a"]}}):
        with pytest.raises(ValueError, match="is not what was encrypted there"):
            vault.open(moved)


@pytest.mark.parametrize(
    ("more", "field", "says"),
    [
        ({"data": {"a": PLANTED}}, "data[a]", "must be base64; put text into stringData"),
        ({"data": {"a": "<encrypted>"}}, "data[a]", "the value was not shown to you"),
        ({"data": {"a/b": ENCODED}}, "data[a/b]", "a valid config key must consist of"),
        ({"data": {"a": 7}}, "data[a]", "must be text, is a whole number"),
        ({"strinData": {"a": PLANTED}}, "strinData", 'unknown field: did you mean "stringData"?'),
    ],
)
async def test_faults_say_no_value(bus: Bus, tmp_path: Path, more: Document, field: str, says: str) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        reply = await api.apply(secret(**more), validation="strict")
    fault = reply.results[0].errors[0]
    assert (fault.field, says in fault.detail) == (field, True)
    assert not shows(codec.encode(reply))


async def test_an_immutable_secret_keeps_its_values(bus: Bus, tmp_path: Path) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        await api.apply(secret(immutable=True))
        changed = await api.apply(secret(immutable=True, data={"password": "eA=="}))
        assert [one.field for one in changed.results[0].errors] == ["data"]
        assert not shows(codec.encode(changed))


async def test_a_request_that_cannot_be_read_is_kept_without_what_it_holds(bus: Bus, tmp_path: Path) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        raw = b'{"objects": [{"kind": "Secret", "stringData": {"a": "%s"}}], "dryRun": 1}' % PLANTED.encode()
        reply = await bus.request(subjects.OBJECTS_APPLY, raw)
        assert b"dryRun" in reply.payload
        assert not shows(reply.payload)
        letters = []

        async def kept() -> bool:
            found = await bus.get("DEAD", subjects.dead("api"))
            letters[:] = [found.payload] if found is not None else []
            return bool(letters)

        await eventually("the dead letter", kept)
        assert not shows(letters[0])
        _ = api


async def test_what_kubectl_noted_of_the_whole_object_is_left_out(bus: Bus, tmp_path: Path) -> None:
    note = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data": {{"password": "{ENCODED}"}}}}'}
    async with ready(bus, tmp_path / "secrets.key") as api:
        await api.apply(secret(metadata={"name": "db", "annotations": note}))
        found = await stored(bus, "secrets", "db")
    assert not shows(found.payload)
    assert "annotations" not in found.document()["metadata"]


async def test_no_span_has_a_value(bus: Bus, tmp_path: Path) -> None:
    async with ready(bus, tmp_path / "secrets.key") as api:
        await api.apply(secret(), secret("bad", data={"a": PLANTED}))
        await api.apply(secret())
        await revealed(api, "db")
        assert api.spans
        assert not shows(repr(api.spans).encode())
