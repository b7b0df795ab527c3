"""What somebody publishes who makes a lost cluster again from what runs and from manifests."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from podyard.bench.checking.history import CLAIMS, CLASSES, CSI_NODES, NODES, PODS, VOLUMES
from podyard.proto.placement import Binding, Tombstone

Document = dict[str, Any]

ORDER = (CLASSES, NODES, CSI_NODES, VOLUMES, CLAIMS, PODS)


def as_it_ran(
    objects: Mapping[tuple[str, str], Document], placed: Mapping[str, Binding | Tombstone]
) -> list[tuple[str, Document]]:
    """The same objects, of the same uids, as a bridge from a cluster that runs on publishes them: a pod that
    runs names its node.

    What has ended, or was about to, is left out.
    """
    found: list[tuple[str, Document]] = []
    for resource, document in _copies(objects):
        if resource == PODS:
            where = placed.get(document["metadata"]["uid"])
            if isinstance(where, Tombstone) or "deletionTimestamp" in document["metadata"]:
                continue
            if where is not None:
                document["spec"]["nodeName"] = where.node
        found.append((resource, document))
    return found


def anew(objects: Mapping[tuple[str, str], Document]) -> list[tuple[str, Document]]:
    """New objects of the same names, as manifests make them: new uids, and nothing is bound."""
    found: list[tuple[str, Document]] = []
    uids: dict[str, str] = {}
    for resource, document in _copies(objects):
        metadata = document["metadata"]
        if resource == VOLUMES and document["spec"]["storageClassName"] == "made":
            continue
        uids[metadata["uid"]] = metadata["uid"] = f"{metadata['uid']}+"
        metadata.pop("deletionTimestamp", None)
        metadata.pop("deletionGracePeriodSeconds", None)
        found.append((resource, document))
    for resource, document in found:
        if resource == VOLUMES:
            _free(document, uids)
        elif resource == CLAIMS and document["spec"]["storageClassName"] != "attached":
            document["spec"].pop("volumeName", None)
            document["metadata"].pop("annotations", None)
            document["status"] = {"phase": "Pending"}
    return found


def _free(volume: Document, uids: Mapping[str, str]) -> None:
    claim = volume["spec"].get("claimRef")
    if claim is None:
        return
    if volume["spec"]["storageClassName"] == "local":
        del volume["spec"]["claimRef"]
        volume["status"] = {"phase": "Available"}
    else:
        claim["uid"] = uids.get(claim["uid"], "")


def _copies(objects: Mapping[tuple[str, str], Document]) -> Iterable[tuple[str, Document]]:
    for wanted in ORDER:
        for (resource, _), document in objects.items():
            if resource == wanted:
                yield resource, json.loads(json.dumps(document))
