"""A real Prometheus on a free port, and its query API."""

import math
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from podyard.runtime import ports
from tests.support import foreign_servers

WITHIN_S: Final = 30.0


class PrometheusServer:
    """Where it listens, and what it says."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.began = time.time()

    def get(self, path: str, **parameters: str) -> Any:
        """`data` of an answer.

        :raises AssertionError: if it answers an error, with what it says
        """
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=WITHIN_S)
        found = answer.json()
        assert found["status"] == "success", f"{path} {parameters}: {found}"
        return found["data"]

    def now(self, query: str) -> list[Any]:
        """The vector of an instant query."""
        return self.get("query", query=query)["result"]

    def since_the_start(self, query: str) -> list[Any]:
        """The matrix of a query over each second since this server was started."""
        began, ends = f"{self.began:.3f}", f"{time.time():.3f}"
        return self.get("query_range", query=query, start=began, end=ends, step="1")["result"]

    def targets(self) -> list[Any]:
        """Those that are scraped."""
        return self.get("targets", state="active")["activeTargets"]

    def rules(self) -> list[Any]:
        """All rules of all groups."""
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


def finite(matrix: list[Any]) -> Iterator[tuple[dict[str, str], float]]:
    """Labels and values, without those that are no number."""
    for series in matrix:
        for _, text in series["values"]:
            value = float(text)
            if math.isfinite(value):
                yield series["metric"], value


@contextmanager
def running(program: Path, config: dict[str, Any], folder: Path) -> Generator[PrometheusServer]:
    """A Prometheus for as long as the block runs.

    :raises AssertionError: if it does not become ready in time, with the end of its log
    """
    file, log = folder / "prometheus.yml", folder / "prometheus.log"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    place = f"127.0.0.1:{ports.free_port()}"
    words = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={place}"]
    with foreign_servers.running("Prometheus", [program, *words], f"http://{place}/-/ready", log):
        yield PrometheusServer(f"http://{place}")
