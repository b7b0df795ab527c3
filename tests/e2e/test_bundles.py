"""What well-known bundles bring runs, all ten in one lab."""

from collections import Counter
from typing import Any, Final

from podyard.objects import manifests
from tests.e2e.stage import Stand, node
from tests.support.bundles import BUNDLES

NODES: Final = ("node-1", "node-2")
WITHIN_S: Final = 90.0
"""For some 60 pods, while other tests run."""

LINUX: Final = {"kubernetes.io/os": "linux"}


async def test_the_pods_of_ten_bundles_run(here: Stand) -> None:
    found = [manifest for name, text in BUNDLES.items() for manifest in manifests.load(name, text)]
    documents = [manifest.document for manifest in found]
    for document in documents:  # the controllers that would take them away do not run
        document["metadata"].pop("finalizers", None)
    await here.join(*(node(name, cpu="64", memory="128Gi", labels=LINUX) for name in NODES))
    await here.do.apply(documents, "ten bundles")
    wanted = pods_of(documents)
    assert len(wanted) > 40, "the bundles lack their workloads"

    def missing() -> Counter[str]:
        return wanted - running(here)

    await here.seen.until("running pods of the bundles", lambda: not missing(), WITHIN_S)
    assert running(here) == wanted, "and no more"
    told = await here.cli("get", "deployments", "--all-namespaces")
    short = [line for line in told.out.splitlines()[1:] if not at_full_strength(line)]
    assert not short, told.out


def pods_of(documents: list[dict[str, Any]]) -> Counter[str]:
    """How many pods each workload makes, as `<kind>/<name>`."""
    return Counter({f"{one['kind']}/{one['metadata']['name']}": wanted for one in documents if (wanted := count(one))})


def count(document: dict[str, Any]) -> int:
    match document["kind"]:
        case "Deployment" | "StatefulSet":
            return document["spec"].get("replicas", 1)
        case "DaemonSet":
            return len(NODES)
        case "Job":
            return document["spec"].get("parallelism", 1)
        case _:
            return 0


def running(here: Stand) -> Counter[str]:
    """Pods that run, by the workload that a person made."""
    sets = here.seen.view.objects("replicasets")
    found: Counter[str] = Counter()
    for (space, _), pod in here.seen.view.pods.items():
        controller = pod.stored.metadata.controller
        if controller is None or pod.status is None or pod.status.phase != "Running":
            continue
        if controller.kind == "ReplicaSet":
            controller = sets[space, controller.name].metadata.controller
            assert controller is not None
        found[f"{controller.kind}/{controller.name}"] += 1
    return found


def at_full_strength(line: str) -> bool:
    """Of a row of `get deployments -A`: namespace, name, ready."""
    ready, _, wanted = line.split()[2].partition("/")
    return ready == wanted != ""
