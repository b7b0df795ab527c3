"""`python -m tests.kube.reference.facts`: what the reference's API server says of itself, kept as data.

- `discovery.json.gz`: the aggregated documents of /api and /apis, and what `kubectl api-resources -o wide`
  makes of them
- `columns.json.gz`: the columns of the table of each kind that can be listed, by `group/version/resource`
  (`v1/pods`): name, type, format, priority

Facts only: no word of the descriptions.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from podyard.bench.programs import kubernetes
from podyard.bench.programs.go_programs import NoProgramError
from tests.kube.reference import control_plane
from tests.kube.reference.control_plane import ControlPlane
from tests.kube.side_by_side import recorded

FOLDER: Final = Path(__file__).parents[1] / "data"
DISCOVERY: Final = FOLDER / "discovery.json.gz"
COLUMNS: Final = FOLDER / "columns.json.gz"
AGGREGATED: Final = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
EMPTY: Final = "metadata.name=there-is-none"
"""A list of this is empty, whatever the reference makes for itself."""

Json = dict[str, Any]


def main() -> None:
    """Write both files."""
    with (
        tempfile.TemporaryDirectory(prefix="podyard-reference-") as folder,
        control_plane.api_server(Path(folder)) as plane,
        plane.client() as client,
    ):
        found = {root: _get(client, root, AGGREGATED) for root in ("/api", "/apis")}
        columns = {"/".join(key): _columns(client, *key) for key in _listed(found)}
        shown = {"versions": recorded.VERSIONS, **found, "api-resources": _api_resources(plane)}
    _write(DISCOVERY, shown)
    _write(COLUMNS, {"versions": recorded.VERSIONS, "columns": columns})


def _get(client: httpx.Client, path: str, headers: dict[str, str]) -> Json:
    answer = client.get(path, headers=headers)
    assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"
    return answer.json()


def _listed(found: dict[str, Json]) -> Iterator[tuple[str, ...]]:
    """Group (none for the core's), version and resource of what can be listed."""
    for document in found.values():
        for group in document["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    if "list" in resource["verbs"]:
                        name = group["metadata"].get("name", "")
                        yield tuple(filter(None, (name, version["version"], resource["resource"])))


def _columns(client: httpx.Client, *key: str) -> list[Json]:
    path = f"/{'api' if len(key) == 2 else 'apis'}/{'/'.join(key)}?fieldSelector={EMPTY}"
    defined: list[Json] = _get(client, path, TABLE)["columnDefinitions"]
    return [{name: value for name, value in one.items() if name != "description"} for one in defined]


def _api_resources(plane: ControlPlane) -> list[str]:
    command = [kubernetes.find(kubernetes.KUBECTL), f"--kubeconfig={plane.kubeconfig}", "api-resources", "-o", "wide"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


def _write(path: Path, document: Json) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(recorded.pack(document))
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    try:
        main()
    except NoProgramError as error:
        sys.exit(f"error: {error}")
