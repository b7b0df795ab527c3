"""The reference's answers, kept: what kubectl of a release printed against the API server of that release."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from podyard.bench.programs import kubernetes
from tests.kube.side_by_side.running import Answer

FILE: Final = Path(__file__).parents[1] / "data" / "reference.json.gz"
VERSIONS: Final = {
    "kubectl": kubernetes.VERSION,
    "control plane": kubernetes.VERSION,
    "etcd": kubernetes.ETCD_VERSION,
}


def pack(document: Any) -> bytes:
    """Bytes of a file: the same for the same document."""
    return gzip.compress(json.dumps(document, indent=1, sort_keys=True).encode(), mtime=0)


def unpack(path: Path) -> Any:
    """What `pack` made."""
    return json.loads(gzip.decompress(path.read_bytes()))


def document(answers: Mapping[str, Sequence[Answer]]) -> dict[str, Any]:
    """What is kept of the scripts' answers."""
    return {
        "versions": VERSIONS,
        "scripts": {name: [one._asdict() for one in found] for name, found in answers.items()},
    }


def load(path: Path = FILE) -> dict[str, list[Answer]]:
    """The answers by script."""
    scripts: dict[str, list[dict[str, Any]]] = unpack(path)["scripts"]
    return {name: [Answer(**one) for one in found] for name, found in scripts.items()}
