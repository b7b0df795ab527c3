"""A plain reading of the rules, one node at a time, on manifests as dictionaries: slow, obvious, and sharing
no code with the plugins."""

from typing import Any

Manifest = dict[str, Any]
Verdict = tuple[str, str, tuple[str, ...]] | None
"""(plugin, code, reasons sorted); None: the node takes the pod."""

PLUGINS = ("PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
"""What is read here; the other plugins have a plain reading of their own."""

UNRESOLVABLE = "UnschedulableAndUnresolvable"
UNSCHEDULABLE = "Unschedulable"


def tolerates(tolerations: list[Manifest], key: str, value: str, effect: str) -> bool:
    """Whether a taint is tolerated."""
    for one in tolerations:
        if one.get("effect", effect) != effect:
            continue
        if one.get("key") not in (None, "", key):
            continue
        if one.get("operator") == "Exists" or (
            one.get("operator", "Equal") == "Equal" and one.get("value", "") == value
        ):
            return True
    return False


def requirement_holds(requirement: Manifest, held: str | None) -> bool:
    """One requirement of a node selector term, for the value that a node has."""
    operator, values = requirement["operator"], requirement.get("values", [])
    if operator == "In":
        return held is not None and held in values
    if operator == "NotIn":
        return held is None or held not in values
    if operator == "Exists":
        return held is not None
    if operator == "DoesNotExist":
        return held is None
    if held is None or not held.lstrip("-").isdigit():
        return False
    return int(held) > int(values[0]) if operator == "Gt" else int(held) < int(values[0])


def term_holds(term: Manifest, labels: dict[str, str], name: str) -> bool:
    """A term: all of its requirements, at least one."""
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    return all(requirement_holds(one, labels.get(one["key"])) for one in expressions) and all(
        requirement_holds(one, name) for one in fields
    )


def verdict(node: Manifest, pod: Manifest, placed: list[Manifest]) -> Verdict:
    """What these plugins say about one pod on one node; amounts are whole numbers."""
    tolerations = pod.get("tolerations", [])
    if node["unschedulable"] and not tolerates(tolerations, "node.kubernetes.io/unschedulable", "", "NoSchedule"):
        return "NodeUnschedulable", UNRESOLVABLE, ("node(s) were unschedulable",)
    if pod.get("nodeName") and pod["nodeName"] != node["name"]:
        return "NodeName", UNRESOLVABLE, ("node(s) didn't match the requested node name",)
    for key, value, effect in node["taints"]:
        if effect != "PreferNoSchedule" and not tolerates(tolerations, key, value, effect):
            return "TaintToleration", UNRESOLVABLE, ("node(s) had untolerated taint(s)",)
    if not _wanted(node, pod):
        return "NodeAffinity", UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
    return _room(node, pod, placed)


def _wanted(node: Manifest, pod: Manifest) -> bool:
    labels = node["labels"]
    if any(labels.get(key) != value for key, value in pod.get("nodeSelector", {}).items()):
        return False
    required = pod.get("required")
    return required is None or any(term_holds(one, labels, node["name"]) for one in required)


def _room(node: Manifest, pod: Manifest, placed: list[Manifest]) -> Verdict:
    reasons: list[str] = []
    unresolvable = False
    if len(placed) + 1 > node["pods"]:
        reasons.append("Too many pods")
    for resource, amount in pod["requests"].items():
        whole = node["allocatable"].get(resource, 0)
        taken = sum(other["requests"].get(resource, 0) for other in placed)
        if amount > 0 and amount > whole - taken:
            reasons.append(f"Insufficient {resource}")
            unresolvable |= amount > whole
    if not reasons:
        return None
    return "NodeResourcesFit", UNRESOLVABLE if unresolvable else UNSCHEDULABLE, tuple(sorted(reasons))


def totals(nodes: list[Manifest], pod: Manifest, placed: dict[str, list[Manifest]]) -> dict[str, int]:
    """Weighted totals of feasible nodes, by name."""
    repelled = {node["name"]: soft(node, pod) for node in nodes}
    liked = {node["name"]: _liked(node, pod) for node in nodes}
    worst, most = max(repelled.values(), default=0), max(liked.values(), default=0)
    found: dict[str, int] = {}
    for node in nodes:
        name = node["name"]
        taints = 100 if worst == 0 else 100 - 100 * repelled[name] // worst
        affinity = 0 if most == 0 else 100 * liked[name] // most
        found[name] = 3 * taints + 2 * affinity + _least_allocated(node, pod, placed[name])
    return found


def soft(node: Manifest, pod: Manifest) -> int:
    """How many soft taints the pod does not tolerate."""
    tolerations = [one for one in pod.get("tolerations", []) if one.get("effect", "") in ("", "PreferNoSchedule")]
    return sum(
        effect == "PreferNoSchedule" and not tolerates(tolerations, key, value, effect)
        for key, value, effect in node["taints"]
    )


def _liked(node: Manifest, pod: Manifest) -> int:
    return sum(weight for weight, one in pod.get("preferred", []) if term_holds(one, node["labels"], node["name"]))


def _least_allocated(node: Manifest, pod: Manifest, placed: list[Manifest]) -> int:
    shares: list[int] = []
    for resource, assumed in (("cpu", 100), ("memory", 200 * 1024 * 1024)):
        whole = node["allocatable"].get(resource, 0)
        if whole == 0:
            continue
        used = sum(one["requests"].get(resource, assumed) for one in [*placed, pod])
        shares.append(0 if used > whole else (whole - used) * 100 // whole)
    return sum(shares) // len(shares) if shares else 0
