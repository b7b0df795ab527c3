"""The dashboard, the rules and the scrape configuration of deploy/: whole, and about metrics and services
that there are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prometheus import queries
from tests.unit.docs.test_links import anchors

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "monitoring.md"
METRICS = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
DASHBOARD = json.loads(queries.DASHBOARD.read_text(encoding="utf-8"))
PROMETHEUS = REPOSITORY / "deploy" / "prometheus"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
ROOM = 24
"""Columns of a dashboard."""


def rules() -> list[dict[str, Any]]:
    """Of all groups."""
    groups = yaml.safe_load((PROMETHEUS / "rules.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = [rule for rule in rules() if "alert" in rule]


def scraped() -> set[str]:
    """Services that prometheus.yml names."""
    jobs = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    return {name for job in jobs for discovery in job["dns_sd_configs"] for name in discovery["names"]}


def documented(names: set[str]) -> set[str]:
    """Those that docs/metrics.md does not have."""
    return {name for name in names if f"`{name}`" not in METRICS}


@pytest.mark.parametrize("panel", queries.panels(), ids=lambda panel: panel["title"])
def test_each_panel_is_whole(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".") or "docs/monitoring.md#" in panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == DATASOURCE
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == DATASOURCE
        assert queries.filled(target["expr"])


def test_panels_have_names_and_places_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= ROOM, panel["title"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_dashboard_names_metrics_that_there_are() -> None:
    named = {name for query in queries.ours() for name in queries.metrics(query.text)}
    assert len(named) > 40
    assert documented(named) == set()


def test_the_dashboards_lists_are_those_that_its_queries_go_by() -> None:
    names = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert names == {"datasource", "service", "instance"}
    assert [one["datasource"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query"] == [DATASOURCE] * 2
    used = {
        name for panel in queries.panels() for one in panel["targets"] for name in re.findall(r"\$(\w+)", one["expr"])
    }
    assert used == {"service", "instance", "__rate_interval", "__range"}


def test_public_dashboards_ask_for_metrics_that_there_are() -> None:
    assert documented({name for query in queries.public() for name in queries.metrics(query.text)}) == set()


def test_rules_are_about_metrics_that_there_are() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    text = " ".join(rule["expr"] for rule in rules())
    assert set(re.findall(r"podyard:\w+:\w+", text)) <= recorded
    assert documented(queries.metrics(re.sub(r"podyard:\w+:\w+", "", text))) == set()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_says_how_bad_it_is_and_where_to_read_on(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"]["summary"]
    assert alert["annotations"]["runbook_url"] == f"docs/monitoring.md#{alert['alert'].lower()}"
    assert alert["alert"].lower() in anchors(PAGE)


def test_the_page_tells_of_no_other_alerts() -> None:
    told = re.findall(r"^### (Podyard\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(alert["alert"] for alert in ALERTS)


def test_the_page_names_commands_that_there_are() -> None:
    named = set(re.findall(r"`podyard (\w+)", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 3
    assert named <= {path.stem for path in (REPOSITORY / "services/podyard/cli/commands").glob("*.py")}


def test_panels_link_to_alerts_that_there_are() -> None:
    linked = {name for panel in queries.panels() for name in re.findall(r"monitoring\.md#(\w+)", panel["description"])}
    assert linked
    assert linked <= anchors(PAGE)


def test_prometheus_scrapes_the_services_of_the_compose_stack() -> None:
    stack = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    ours = {name for name, one in stack.items() if one.get("restart") in ("unless-stopped", "on-failure")}
    assert scraped() == ours - {"nats", "jaeger", "prometheus"}


def test_rules_go_by_services_that_are_scraped() -> None:
    text = " ".join(rule["expr"] for rule in rules())
    named = {name for names in re.findall(r'service=~?"([^"]+)"', text) for name in names.split("|")}
    assert named == scraped()
