"""Who asks: the request's own word, or the server's."""

from pathlib import Path

import pytest

from podyard.api.requesters import Requesters, read_names
from podyard.bus import Request
from podyard.proto import headers
from podyard.runtime.settings import SettingsError

NAMES = {"UABC": "person"}


def request(info: str | None) -> Request:
    return Request("svc.objects.apply", b"", headers={} if info is None else {headers.REQUEST_INFO: info})


@pytest.mark.parametrize(
    ("names", "info", "who"),
    [
        pytest.param({}, '{"user": "UABC"}', "ann", id="no accounts: its own word"),
        pytest.param(NAMES, None, "ann", id="from within the services' account"),
        pytest.param(NAMES, '{"acc": "EDGE", "user": "UABC", "id": 7}', "person", id="known"),
        pytest.param(NAMES, '{"user": "UXYZ"}', "UXYZ", id="a key that came later"),
        pytest.param(NAMES, "{}", "somebody whom the NATS server does not name", id="nobody"),
        pytest.param(NAMES, "[" * 5000, "somebody whom the NATS server does not name", id="nested"),
        pytest.param(NAMES, "nonsense", "somebody whom the NATS server does not name", id="nonsense"),
        pytest.param(NAMES, '{"user": 7}', "somebody whom the NATS server does not name", id="another type"),
    ],
)
def test_who_asks(names: dict[str, str], info: str | None, who: str) -> None:
    assert Requesters(names).who(request(info), "ann") == who


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "[" * 100_000, b"\xff"])
def test_a_file_that_is_none_of_ours_is_told_at_the_start(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "identities.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SettingsError, match=r"api\.identities_file"):
        read_names(str(file))


def test_without_a_file_there_are_no_names() -> None:
    assert read_names("") == {}


def test_names_are_read_again_when_a_key_comes_that_is_new(tmp_path: Path) -> None:
    file = tmp_path / "identities.json"
    file.write_text('{"UABC": "person"}')
    asked = Requesters(read_names(str(file)), str(file))
    assert asked.who(request('{"user": "UNEW"}'), "ann") == "UNEW"
    file.write_text('{"UABC": "person", "UNEW": "bridge"}')
    assert asked.who(request('{"user": "UNEW"}'), "ann") == "bridge"
    file.write_text("nonsense")
    assert asked.who(request('{"user": "UXYZ"}'), "ann") == "UXYZ"
    assert asked.who(request('{"user": "UABC"}'), "ann") == "person"
