"""promtool on what stands in deploy/: the configuration, the rules, and each alert with series that set it
off and series that do not."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.prometheus.binary import Programs
from tests.prometheus.scraping import CONFIG, REPOSITORY, RULES

PAGE = REPOSITORY / "docs" / "monitoring.md"
ALERTS = Path(__file__).with_name("alerts.yml")


def promtool(programs: Programs, *words: str) -> None:
    """
    :raises AssertionError: if it finds fault, with what it says
    """
    done = subprocess.run([programs.promtool, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"promtool {' '.join(words)}\n{done.stdout}{done.stderr}"


def alerts() -> set[str]:
    """Names, in the rules."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


def tried() -> list[dict[str, Any]]:
    """Of alerts."""
    found = yaml.safe_load(ALERTS.read_text())["tests"]
    return [test for each in found for test in each["alert_rule_test"]]


def test_prometheus_takes_the_configuration(programs: Programs) -> None:
    promtool(programs, "check", "config", str(CONFIG))


def test_prometheus_takes_what_the_page_says(programs: Programs, tmp_path: Path) -> None:
    """But for the files that it names, which are the reader's."""
    [block] = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for name in ("podyard-ca.crt", "podyard-token", "rules.yml"):
        (tmp_path / name).write_bytes(RULES.read_bytes() if name == RULES.name else b"-")
    config = tmp_path / "prometheus.yml"
    config.write_text(block.replace("/etc/prometheus", str(tmp_path)), encoding="utf-8")
    promtool(programs, "check", "config", str(config))


def test_the_rules_load(programs: Programs) -> None:
    promtool(programs, "check", "rules", str(RULES))


def test_alerts_fire_where_they_should_and_nowhere_else(programs: Programs) -> None:
    promtool(programs, "test", "rules", str(ALERTS))


def test_each_alert_is_tried_both_ways() -> None:
    fires = {test["alertname"] for test in tried() if test.get("exp_alerts")}
    stays = {test["alertname"] for test in tried() if not test.get("exp_alerts")}
    assert fires == stays == alerts()
