"""NodeResourcesFit and NodeResourcesBalancedAllocation, read plainly: one node, one resource at a time.

Amounts are written so that reading them is easy: cpu always as `<n>m`, all else as a whole number.
"""

import math
from typing import Any

Manifest = dict[str, Any]
Amounts = dict[str, int]

MIB = 1024 * 1024
LARGEST = 2**63 - 1
"""What one pod can request at most; what several take together has no largest number."""


def amounts(texts: dict[str, str]) -> Amounts:
    return {name: int(text.removesuffix("m")) for name, text in texts.items()}


def requests(pod: Manifest) -> Amounts:
    """Sum over containers."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        for name, amount in amounts(container["resources"]["requests"]).items():
            total[name] = min(total.get(name, 0) + amount, LARGEST)
    return total


def assumed(pod: Manifest) -> Amounts:
    """Sum over containers, with 100m and 200Mi for what one leaves out."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        asked = {"cpu": 100, "memory": 200 * MIB} | amounts(container["resources"]["requests"])
        for name, amount in asked.items():
            total[name] = min(total.get(name, 0) + amount, LARGEST)
    return total


def verdict(node: Manifest, pod: Manifest, placed: list[Manifest], ignored: set[str]) -> tuple[str, set[str]] | None:
    """(code, reasons); None if the pod fits. `ignored` has names and groups."""
    whole = amounts(node["status"]["allocatable"])
    reasons = {"Too many pods"} if len(placed) + 1 > whole.get("pods", 0) else set[str]()
    code = "Unschedulable"
    for name, amount in requests(pod).items():
        if amount == 0 or ("/" in name and (name in ignored or name.split("/")[0] in ignored)):
            continue
        has = whole.get(name, 0)
        if amount > has - sum(requests(other).get(name, 0) for other in placed):
            reasons.add(f"Insufficient {name}")
            code = "UnschedulableAndUnresolvable" if amount > has else code
    return (code, reasons) if reasons else None


def _rows(node: Manifest, pod: Amounts, placed: list[Amounts], names: list[str]) -> list[tuple[int, int, int, int]]:
    """(place in names, with the pod, without, all) for each resource that counts on this node."""
    whole = amounts(node["status"]["allocatable"])
    found: list[tuple[int, int, int, int]] = []
    for at, name in enumerate(names):
        if whole.get(name, 0) == 0 or ("/" in name and pod.get(name, 0) == 0):
            continue
        taken = sum(other.get(name, 0) for other in placed)
        found.append((at, taken + pod.get(name, 0), taken, whole[name]))
    return found


def fit_score(node: Manifest, pod: Manifest, placed: list[Manifest], strategy: Manifest) -> int:
    """LeastAllocated, MostAllocated, RequestedToCapacityRatio."""
    resources = strategy["resources"]
    names = [one["name"] for one in resources]
    points = weights = 0
    for at, taken, _, whole in _rows(node, assumed(pod), [assumed(other) for other in placed], names):
        weight = resources[at]["weight"]
        if strategy["type"] == "LeastAllocated":
            score = 0 if taken > whole else (whole - taken) * 100 // whole
        elif strategy["type"] == "MostAllocated":
            score = 100 if taken > whole else taken * 100 // whole
        else:
            shape = strategy["requestedToCapacityRatio"]["shape"]
            score = broken_line(shape, 100 if taken > whole else taken * 100 // whole)
            weight = 0 if score == 0 else weight
        points += score * weight
        weights += weight
    if weights == 0:
        return 0
    if strategy["type"] == "RequestedToCapacityRatio":
        return math.floor(points / weights + 0.5)
    return points // weights


def broken_line(shape: list[Manifest], percent: int) -> int:
    """Go's integer arithmetic on the scaled shape."""
    scaled = [(point["utilization"], point["score"] * 10) for point in shape]
    for at, (utilization, score) in enumerate(scaled):
        if percent <= utilization:
            if at == 0:
                return score
            x, y = scaled[at - 1]
            return y + math.trunc((score - y) * (percent - x) / (utilization - x))
    return scaled[-1][1]


def balance(node: Manifest, pod: Manifest, placed: list[Manifest], names: list[str]) -> int | None:
    """BalancedAllocation; None if the pod requests nothing that counts."""
    asked = requests(pod)
    if all(asked.get(name, 0) == 0 for name in names):
        return None
    rows = _rows(node, asked, [requests(other) for other in placed], names)
    after = _even([min(1.0, float(taken) / float(whole)) for _, taken, _, whole in rows])
    before = _even([min(1.0, float(without) / float(whole)) for _, _, without, whole in rows])
    return 50 + (50 + after - before) // 2


def _even(shares: list[float]) -> int:
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs((shares[0] - shares[1]) / 2)) * 100)
    total = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / len(shares))) * 100)
