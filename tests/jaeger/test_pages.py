"""What the lab's Jaeger offers on its pages: saved searches, and links from a span's attributes. The pages
themselves are not built here; each search is asked of the query API, as the page would."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from podyard.cli.demo.evidence import Evidence
from podyard.cli.jaeger.api import Jaeger
from podyard.cli.jaeger.model import Span, Trace
from tests.jaeger.reading import until
from tests.jaeger.server import PAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG: dict[str, Any] = json.loads(PAGES.read_text(encoding="utf-8"))
[SAVED] = CONFIG["menu"]
IN_THE_STORY = {
    "Pods that fit nowhere",
    "Waits before an attempt: parked, backing off",
    "Evictions by nodes",
    "Evictions by the descheduler",
    "Events that moved pods",
    "What people applied",
    "What controllers made",
}
"""Searches that find something after the demo."""
NAMED = re.compile(r"#\{([^}]+)\}")


def asked(jaeger: Jaeger, url: str) -> list[Trace]:
    """What the search form finds with such an address."""
    query = {key: values[0] for key, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
    tags: dict[str, str] = json.loads(query.get("tags", "{}"))
    assert query.keys() <= {"service", "operation", "lookback", "limit", "tags"}
    return jaeger.search(query["service"], query.get("operation", ""), tags, int(query.get("limit", "20")))


@pytest.mark.parametrize("item", SAVED["items"], ids=lambda item: item["label"])
async def test_a_saved_search_finds_what_it_is_called(told: Evidence, jaeger: Jaeger, item: dict[str, Any]) -> None:
    if item["label"] in IN_THE_STORY:
        until(item["label"], lambda: asked(jaeger, item["url"]))
    else:
        asked(jaeger, item["url"])
    service = parse_qs(urlsplit(str(item["url"])).query)["service"][0]
    assert service in jaeger.services()


def spans(jaeger: Jaeger) -> Iterator[Span]:
    for service in jaeger.services():
        for trace in jaeger.search(service, limit=500):
            yield from trace.spans


@pytest.mark.parametrize("link", CONFIG["linkPatterns"], ids=lambda link: link["key"])
async def test_a_link_leads_from_an_attribute_to_attempts(told: Evidence, jaeger: Jaeger, link: dict[str, Any]) -> None:
    def found() -> str:
        for span in spans(jaeger):
            value = str(span.attributes.get(link["key"], ""))
            if value and asked(jaeger, NAMED.sub(quote(value), link["url"])):
                return value
        return ""

    assert NAMED.findall(link["url"]) == [link["key"]]
    until(f"a span with {link['key']} whose link leads to attempts", found)


async def test_jaeger_does_not_trace_itself(told: Evidence, jaeger: Jaeger) -> None:
    jaeger.search("podyard-queue", "attempt")
    assert [name for name in jaeger.services() if not name.startswith("podyard-")] == []
