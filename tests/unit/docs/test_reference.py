"""The pages of docs/reference say what the code says, and the code says something of everything in them."""

import inspect

import pytest

from podyard.cli import services
from podyard.proto import catalogue
from podyard.runtime.settings import ServiceSettings
from tools.reference import messages, objects, settings
from tools.reference.pages import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_has_it(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/reference/{name} is stale: make reference"


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize(
    "section", [ServiceSettings, *(services.definition(name).settings_type for name in services.NAMES)]
)
def test_every_setting_says_what_it_is(section: type) -> None:
    assert [one.path for one in settings.of(section) if not one.meaning] == []


@pytest.mark.parametrize("message", catalogue.messages())
def test_every_message_says_what_it_is(message: type) -> None:
    assert len((inspect.getdoc(message) or "").split()) > 5


def test_every_annotation_says_what_it_is() -> None:
    found = list(objects.words())
    assert {"podyard.io/agent", "podyard.io/start-delay", "descheduler.alpha.kubernetes.io/evict"} <= {
        one.text for one in found
    }
    assert [one for one in found if not one.meaning] == []


def test_flags_are_those_of_the_service() -> None:
    assert settings.flags("queue.lease_ttl_s", "queue") == ["leader-elect-lease-duration"]
    assert settings.flags("scheduler.lease_ttl_s", "scheduler") == []
    assert settings.flags("log.level", None) == ["log-level", "v"]


def test_who_may_send_is_told_by_the_identities() -> None:
    assert messages.senders("svc.queue.pop") == ["scheduler"]
    assert messages.senders("placement.fence") == ["binder"]
    assert "person" in messages.senders("svc.objects.apply")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a.*.c", "a.b.>", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a", False),
        ("*.b", "a.*", True),
        ("a.b", "a.c", False),
    ],
)
def test_patterns_overlap_where_a_subject_matches_both(one: str, other: str, same: bool) -> None:
    assert messages.overlap(one.split("."), other.split(".")) == same
    assert messages.overlap(other.split("."), one.split(".")) == same
