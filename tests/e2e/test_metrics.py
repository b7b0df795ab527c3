"""Every service's /metrics as Prometheus reads it: both text formats, kube-scheduler's families with data in
them, and examples that name traces which were sent."""

import httpx
import pytest
import pytest_asyncio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from tests.e2e.stage import WITHIN_S, Stand, node
from tests.support.otlp_sink import OtlpSink
from tests.support.reference_metrics import programs
from tests.support.shown_metrics import CORED, EVENTS, EVERY, INSTRUMENTS, LEASE, SEND_EVENTS, Shown, shown
from tests.support.waiting import eventually

OPENMETRICS = "application/openmetrics-text;version=1.0.0;escaping=underscores"
RARE = frozenset(
    {
        "scheduler_permit_wait_duration_seconds",  # no plugin of the default profile waits
        "scheduler_queueing_hint_execution_duration_seconds",  # whether a hint was asked is a matter of chance here
    }
)
"""Families that may have no series yet."""


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(node("node-1"), node("node-2"))
    await here.do.apply([here.pod(name) for name in ("a", "b", "c")], "a test")
    await here.do.apply([here.pod("huge", cpu="64")], "a test")
    await here.running("a", "b", "c")
    await here.attempted("huge")
    return here


async def scraped(here: Stand, accept: str) -> dict[str, str]:
    """The answer of every process, by service."""
    found: dict[str, str] = {}
    async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=False) as client:
        for service in INSTRUMENTS:
            url = f"http://{here.lab.child(service).http}/metrics"
            answer = await client.get(url, headers={"Accept": accept})
            assert answer.is_success, (url, answer.text)
            found[service] = answer.text
    return found


async def test_families_of_kube_scheduler_have_data(here: Stand) -> None:
    reference = {
        family.name for program in ("kube-scheduler", "component-base") for family in programs()[program].families
    }
    of_page = {one.name for service in ("queue", "scheduler", "binder", LEASE) for one in shown()[service]}
    missing = (reference & of_page) - RARE

    async def filled() -> bool:
        for text in (await scraped(here, "text/plain")).values():
            for family in read_text(text):
                if family.samples:
                    missing.discard(family.name + ("_total" if family.type == "counter" else ""))
        return not missing

    await eventually("data in every family", filled, WITHIN_S)


async def test_openmetrics_is_read_by_a_strict_reader_and_examples_name_traces_that_were_sent(
    here: Stand, sink: OtlpSink
) -> None:
    examples: dict[str, set[str]] = {}
    for service, text in (await scraped(here, OPENMETRICS)).items():
        assert text.endswith("# EOF\n"), service
        for family in read_openmetrics(text):
            for sample in family.samples:
                if sample.exemplar is not None:
                    examples.setdefault(family.name, set()).add(sample.exemplar.labels["trace_id"])
    assert set(examples) == {
        "podyard_binder_bind_seconds",
        "podyard_queue_wait_seconds",
        "scheduler_scheduling_attempt_duration_seconds",
        "scheduler_pod_scheduling_sli_duration_seconds",
    }
    traces = set.union(*examples.values())
    sink.wait_for(lambda spans: traces <= {span.trace_id for span in spans})


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
async def test_every_family_of_the_page_is_shown(here: Stand, accept: str) -> None:
    found = shown()
    for service, text in (await scraped(here, accept)).items():
        kinds = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
        families = [*found[service], *found[EVERY], *(() if service in ("api", "kube_api") else found[CORED])]
        families += found[EVENTS] if service in SEND_EVENTS else ()
        told = {_told(one, accept) for one in families}
        assert told <= kinds, service
        more = {name for name in kinds - told if not name.endswith(("_created", "_leading", "_master_status"))}
        assert more == set(), f"{service} shows what the page does not list"


def _told(one: Shown, accept: str) -> str:
    """The name of a family, which OpenMetrics writes without what its samples end in."""
    ends = {"counter": "_total", "info": "_info"}.get(one.type, "")
    return one.name if accept == "text/plain" else one.name.removesuffix(ends)
