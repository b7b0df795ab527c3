"""A few cases of every suite; all of them are run by `make test-conformance`."""

from pathlib import Path

import pytest

from tests.conformance import running

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("suite", "file", "every"),
    [
        pytest.param("schedule", "public.jsonl.gz", 25, id="schedule"),
        pytest.param("schedule", "public-large.jsonl.gz", 20, id="schedule, large"),
        pytest.param("preempt", "public.jsonl.gz", 20, id="preempt"),
        pytest.param("config", "public.jsonl.gz", 10, id="config"),
        pytest.param("classify", "public.jsonl.gz", 10, id="classify"),
        pytest.param("registry", "registry.json.gz", 1, id="registry"),
        pytest.param("requeue", "public.jsonl.gz", 20, id="requeue"),
        pytest.param("thresholds", "public.jsonl.gz", 5, id="thresholds"),
        pytest.param("rank", "public.jsonl.gz", 5, id="rank"),
        pytest.param("synchronize", "public.jsonl.gz", 5, id="synchronize"),
        pytest.param("deschedule", "public.jsonl.gz", 10, id="deschedule"),
        pytest.param("policy", "public.jsonl.gz", 10, id="policy"),
        pytest.param("cron", "public.jsonl.gz", 5, id="cron"),
        pytest.param("workloads", "public.jsonl.gz", 5, id="workloads"),
    ],
)
def test_a_sample_passes(suite, file, every) -> None:
    cases = running.load(suite, DATA / suite / file)[::every]
    failed = {outcome.case.id: outcome.differences for outcome in running.run_all(suite, cases) if not outcome.passed}
    assert failed == {}
