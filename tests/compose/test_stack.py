"""`docker compose up` for real: README's commands, decisions and traces from outside, every container killed
once.

The tests are in order: what one leaves is there for the next, as for a person who tries one thing after the
other.
"""

import json
import re
from typing import Any

import pytest

from tests.compose import readme
from tests.compose.stack import LASTING, Stack

PROMISES = (
    "8 nodes Ready in zone-a, zone-b, zone-c",
    "30 pods running on ",
    "A: 0/8 nodes are available: 1 node(s) had untolerated taint",
    "B stays parked, NodeResourcesFit's hint says: ",
    "B moved by NodeResourcesFit's hint (",
    "A moved by TaintToleration's hint (",
    " evicted on node-",
    " moved away from node-",
    "attempt 1: unschedulable",
    "scheduled on node-6",
)
"""What the demo's story says it saw."""

WAY = {
    "attempt": ("podyard-queue", ""),
    "wait in queue": ("podyard-queue", "attempt"),
    "schedule cycle": ("podyard-scheduler", "attempt"),
    "bind": ("podyard-binder", "schedule cycle"),
    "start pod": ("podyard-node_agent", "bind"),
}
"""Span -> service, and its parent or what it follows, of a pod that was placed."""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: main, image: test, resources: {requests: {cpu: 10m}}}]
"""


def test_up_gives_a_lab_with_nodes(stack: Stack) -> None:
    assert stack.all_well(), stack.state()
    nodes = json.loads(stack.podyard("get", "nodes", "-o", "json"))
    assert len(nodes["items"]) == 8
    lab = stack.until("the nodes' service has ended", lambda: _ended(stack, "lab-nodes"))
    assert lab["State"]["ExitCode"] == 0


def _ended(stack: Stack, service: str) -> Any:
    found = stack.container(service)
    return found.details if found.state == "exited" else None


@pytest.mark.parametrize("service", LASTING)
def test_containers_are_contained(stack: Stack, service: str) -> None:
    found = stack.container(service).details
    assert found["HostConfig"]["ReadonlyRootfs"] is True
    assert found["HostConfig"]["CapDrop"] == ["ALL"]
    assert found["HostConfig"]["SecurityOpt"] == ["no-new-privileges:true"]
    assert found["State"]["Health"]["Status"] == "healthy"
    if service not in ("nats", "jaeger"):
        assert found["Config"]["User"] == "10001:10001"


def test_the_ca_bundle_stays_in_no_layer(stack: Stack) -> None:
    look = "find / -xdev -path '*secrets*' -o -xdev -name '*ca_bundle*' 2>/dev/null; id -u"
    seen = stack.compose("run", "--rm", "--entrypoint", "/bin/sh", "cli", "-c", look)
    assert [line for line in seen.split() if not line.endswith(".py") and not line.endswith(".pyc")] == ["10001"]


def test_the_readmes_commands_do_what_it_says(stack: Stack) -> None:
    told = {command: stack.good(command) for command in readme.commands()[1:-1]}
    [demo] = [text for command, text in told.items() if command.endswith(" demo")]
    missing = [promise for promise in PROMISES if promise not in " ".join(demo.split())]
    assert missing == [], demo
    [trace] = [text for command, text in told.items() if "trace" in command]
    assert re.search(r"rejected by .*TaintToleration", trace), trace
    assert re.search(r"woken by NodeUpdateNodeTaint of node-\d, TaintToleration's hint: ", trace), trace
    assert "came from apply (api: “the pool is free for all” " in trace


def test_the_story_can_be_told_again_from_outside(stack: Stack) -> None:
    told = " ".join(stack.podyard("demo", "--running").split())
    assert [promise for promise in PROMISES if promise not in told] == [], told


def test_a_decision_can_be_explained_and_its_trace_read(stack: Stack) -> None:
    story = json.loads(stack.podyard("explain", "pod", "trainer", "-o", "json"))
    assert story["node"] == "node-6"
    outcomes = [entry["record"]["outcome"] for entry in story["entries"] if entry["entry"] == "attempt"]
    assert outcomes == ["unschedulable", "scheduled"]
    _connected(stack, "trainer")


@pytest.mark.parametrize("service", LASTING)
def test_a_killed_container_comes_back_and_pods_are_placed(stack: Stack, service: str) -> None:
    stack.crash_and_wait(service)
    name = f"after-{service}"
    stack.podyard("apply", "-f", "-", stdin=POD.replace("NAME", name))
    stack.until(f"{name} running", lambda: stack.phase(name) == "Running")
    _connected(stack, name)


def _connected(stack: Stack, pod: str) -> None:
    """The pod's last trace goes through all services, each span below the right one."""
    seen: dict[str, tuple[str, str]] = {}

    def whole() -> bool:
        try:
            traces = json.loads(stack.podyard("trace", pod, "-o", "json"))
        except AssertionError as error:
            # not there yet: spans come half a second after the act
            if "has no trace of pod" in str(error):
                return False
            raise
        spans = traces[-1]["spans"]
        names = {span["span_id"]: span["name"] for span in spans}
        seen.clear()
        for span in spans:
            above = [span["parent_id"], *(span_id for _, span_id in span["links"])]
            seen[span["name"]] = span["service"], next((names[one] for one in above if one in names), "")
        return {name: seen.get(name) for name in WAY} == WAY

    stack.until(f"one trace of {pod} through all services", whole, 20)
