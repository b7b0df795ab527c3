"""Bodies of requests to extenders, and what their answers say.

Keys are spelled as Go spells fields without a tag; of answers any spelling is taken, as Go does.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/extender/v1/types.go,
pkg/scheduler/extender.go.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.framework.extenders import (
    Extender,
    FilterAnswer,
    FilterCall,
    MetaVictims,
    PreemptAnswer,
    PreemptCall,
    PrioritizeAnswer,
    PrioritizeCall,
)
from podyard.framework.status import told
from podyard.objects.core import Pod
from podyard.proto.message import PodRef

BASE_BYTES: Final = 4 * 1024 * 1024
"""Of an answer that need not repeat anything of the request: a reason of 800 bytes for each of 5,000
nodes."""
LARGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes; an answer that repeats 5,000 whole nodes has about 20 million."""

INT64: Final = range(-(2**63), 2**63)
"""Scores and counts are of 64 bits."""


def largest_answer(request_bytes: int) -> int:
    """Bytes of an answer that are read: it may repeat the request, in other words, and give reasons."""
    return min(LARGEST_ANSWER, BASE_BYTES + 2 * request_bytes)


class AnswerError(ValueError):
    """An extender's answer does not have the shape that the protocol gives it."""


def filter_request(call: FilterCall | PrioritizeCall, nodes: NodeTable) -> dict[str, Any]:
    """ExtenderArgs: names for those that keep nodes themselves, else whole nodes."""
    body: dict[str, Any] = {"Pod": pod_document(call.pod.pod), "Nodes": None, "NodeNames": None}
    if call.extender.node_cache_capable:
        body["NodeNames"] = list(call.nodes)
    else:
        body["Nodes"] = {"metadata": {}, "items": [_node_document(nodes, name) for name in call.nodes]}
    return body


def preempt_request(call: PreemptCall) -> dict[str, Any]:
    """ExtenderPreemptionArgs."""
    pod = pod_document(call.pod.pod)
    if call.extender.node_cache_capable:
        meta = {
            node: {
                "Pods": [{"UID": victim.uid} for victim in victims.pods],
                "NumPDBViolations": victims.pdb_violations,
            }
            for node, victims in call.victims.items()
        }
        return {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
    whole = {
        node: {
            "Pods": [pod_document(victim.pod) for victim in victims.pods],
            "NumPDBViolations": victims.pdb_violations,
        }
        for node, victims in call.victims.items()
    }
    return {"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None}


def bind_request(pod: PodRef, node: str) -> dict[str, Any]:
    """ExtenderBindingArgs."""
    return {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}


def pod_document(pod: Pod) -> dict[str, Any]:
    """A pod as Podyard reads it: fields that it does not know are not sent."""
    return {"apiVersion": "v1", "kind": "Pod"} | msgspec.to_builtins(pod)


def _node_document(nodes: NodeTable, name: str) -> dict[str, Any]:
    node = nodes.nodes[nodes.row_of[name]]
    return {"apiVersion": "v1", "kind": "Node"} | msgspec.to_builtins(node)


# ---- answers -----------------------------------------------------------------------------------------------


def filter_answer(extender: Extender, answer: Any) -> FilterAnswer:
    """ExtenderFilterResult. Source: extender.go, Filter.

    :raises AnswerError: if it is none
    """
    found = _fields(answer, "ExtenderFilterResult")
    error = _text(found, "error")
    if error:
        return FilterAnswer(error=error)
    names = found.get("nodenames")
    if extender.node_cache_capable and names is not None:
        nodes = tuple(_texts(names, "NodeNames"))
    elif found.get("nodes") is not None:
        items = _list(_fields(found["nodes"], "Nodes").get("items") or [], "Nodes.items")
        nodes = tuple(_name_of(item) for item in items)
    else:
        nodes = ()
    return FilterAnswer(
        nodes=nodes,
        failed=_reasons(found, "failednodes"),
        failed_and_unresolvable=_reasons(found, "failedandunresolvablenodes"),
    )


def prioritize_answer(answer: Any) -> PrioritizeAnswer:
    """HostPriorityList.

    :raises AnswerError: if it is none
    """
    scores: dict[str, int] = {}
    for item in _list([] if answer is None else answer, "HostPriorityList"):
        one = _fields(item, "HostPriority")
        scores[_text(one, "host")] = _whole(one.get("score", 0), "Score")
    return PrioritizeAnswer(scores=scores)


def preempt_answer(answer: Any) -> PreemptAnswer:
    """ExtenderPreemptionResult.

    :raises AnswerError: if it is none
    """
    found = _fields(answer, "ExtenderPreemptionResult")
    by_node = _mapping(found.get("nodenametometavictims") or {}, "NodeNameToMetaVictims")
    return PreemptAnswer(victims={node: _meta_victims(named) for node, named in by_node.items()})


def bind_error(answer: Any) -> str:
    """ExtenderBindingResult: what it says was wrong, "" if nothing.

    :raises AnswerError: if it is none
    """
    return _text(_fields(answer, "ExtenderBindingResult"), "error")


def _meta_victims(named: Any) -> MetaVictims:
    found = _fields(named, "MetaVictims")
    pods = _list(found.get("pods") or [], "Pods")
    violations = _whole(found.get("numpdbviolations", 0), "NumPDBViolations")
    uids = tuple(_text(_fields(pod, "MetaPod"), "uid") for pod in pods)
    return MetaVictims(uids=uids, pdb_violations=violations)


def _reasons(found: Mapping[str, Any], key: str) -> dict[str, str]:
    listed = _mapping(found.get(key) or {}, key)
    return {node: told(_as_text(reason, f"{key}.{node}")) for node, reason in listed.items()}


def _name_of(item: Any) -> str:
    metadata = _mapping(_mapping(item, "Nodes.items").get("metadata") or {}, "metadata")
    return _text(metadata, "name")


def _fields(answer: Any, what: str) -> dict[str, Any]:
    """The object's fields by their names in lower case."""
    return {name.lower(): value for name, value in _mapping(answer, what).items()}


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AnswerError(f"{what}: must be an object, is {_shown(value)}")
    return cast("dict[str, Any]", value)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise AnswerError(f"{what}: must be a list, is {_shown(value)}")
    return cast("list[Any]", value)


def _texts(value: Any, what: str) -> list[str]:
    return [_as_text(item, what) for item in _list(value, what)]


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return "" if value is None else told(_as_text(value, key))


def _as_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise AnswerError(f"{what}: must be text, is {_shown(value)}")
    return value


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in INT64:
        raise AnswerError(f"{what}: must be a whole number of 64 bits, is {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    """The beginning of it; of lists and objects only what they are, since their whole text would have to be
    made first."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{value:.80}" if isinstance(value, str) else f"{value!r:.80}"
