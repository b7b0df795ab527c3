"""Metrics have the reference's names, labels and buckets where they are the same; docs/metrics.md lists all
of them, and says why some of the reference's are not here."""

import re

import pytest

from tests.support import metrics_page, shown_metrics
from tests.support.reference_metrics import Family, programs
from tests.support.shown_metrics import Shown

TEXT = metrics_page.PAGE.read_text(encoding="utf-8")
ABSENT = metrics_page.absent(TEXT)
FAMILIES = [(each.program, family) for each in programs().values() for family in each.families]
OF = {
    "kube-scheduler": ("queue", "scheduler", "binder"),
    "component-base": (shown_metrics.LEASE,),
    "kubelet": ("node_agent",),
    "descheduler": ("descheduler",),
}
"""Which services show a program's families."""
ROOT = metrics_page.PAGE.parents[1]


@pytest.fixture(scope="module")
def shown() -> dict[str, list[Shown]]:
    return shown_metrics.shown()


@pytest.mark.parametrize(("program", "family"), FAMILIES, ids=lambda one: getattr(one, "name", one))
def test_a_family_of_the_reference_is_the_same_here_or_its_absence_has_a_reason(
    shown: dict[str, list[Shown]], program: str, family: Family
) -> None:
    found = [one for service in OF[program] for one in shown[service] if one.name == family.name]
    if family.name in ABSENT:
        assert ABSENT[family.name][0] == program
        assert not found, "it is shown, and docs/metrics.md says that it is not"
        return
    assert found, "neither shown, nor among those that docs/metrics.md has reasons for"
    for one in found:
        assert one.labels == family.labels
        assert one.buckets == pytest.approx(family.buckets, rel=1e-12)
        assert one.type == ("unknown" if no_counter(family) else family.type)


def no_counter(family: Family) -> bool:
    """Whether OpenMetrics knows no such counter: its name lacks `_total`, or another one has that name
    without it."""
    bare = family.name.removesuffix("_total")
    return family.type == "counter" and (bare == family.name or bare in metrics_page.reference())


def test_names_of_the_reference_are_used_for_nothing_else(shown: dict[str, list[Shown]]) -> None:
    known = metrics_page.reference()
    own = [one.name for found in shown.values() for one in found if one.name not in known]
    strangers = [name for name in own if not name.startswith(("podyard_", "process_", "python_"))]
    assert strangers == []


def test_what_any_module_shows_is_among_them(shown: dict[str, list[Shown]]) -> None:
    """By the names that are written where metrics are made."""
    made = re.compile(r"(?:[Cc]ounter|[Gg]auge|[Hh]istogram|Family|Info)\(\s*(?:registry,\s*)?\"([a-z_]+)\"")
    texts = [path.read_text(encoding="utf-8") for part in ("libs", "services") for path in (ROOT / part).rglob("*.py")]
    names = {name for text in texts for name in made.findall(text)}
    known = {one.name for found in shown.values() for one in found}
    assert {name for name in names if not known & {name, f"{name}_total", f"{name}_info"}} == set()
    assert len(names) > 80, "the search still finds them"


def test_the_page_gives_reasons_for_families_of_the_reference_only() -> None:
    known = metrics_page.reference()
    assert {name: known[name][0] for name in ABSENT} == {name: program for name, (program, _) in ABSENT.items()}


def test_the_page_lists_what_is_shown() -> None:
    """`python -m tests.support.metrics_page` writes it."""
    assert metrics_page.in_page(TEXT) == metrics_page.tables()
