"""Preemption as one would do it by hand: dictionaries, loops, no table, no trials.

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go,
framework/preemption/preemption.go.
"""

from typing import Any, Final

Case = dict[str, Any]
NONE: Final = "no victims"
NO_ROOM: Final = "no room"
SHIFT: Final = 2**31


def fits(node: Case, pods: list[Case], me: Case) -> bool:
    """Room in cpu and pods, free ports."""
    cpu = sum(pod["cpu"] for pod in pods) + me["cpu"]
    taken = {port for pod in pods for port in pod["ports"]}
    return (me["cpu"] == 0 or cpu <= node["cpu"]) and len(pods) < node["pods"] and not taken & set(me["ports"])


def passes(node: Case, pods: list[Case], me: Case, nominated: list[Case]) -> bool:
    """Both with the pods that wait for the node and without."""
    rivals = [pod for pod in nominated if pod["node"] == node["name"] and pod["priority"] >= me["priority"]]
    return fits(node, pods + rivals, me) and fits(node, pods, me)


def important(pod: Case) -> tuple[float, float]:
    return -pod["priority"], float("inf") if pod["start"] is None else pod["start"]


def broken(pods: list[Case], budgets: list[Case]) -> set[str]:
    """Names of the pods that overdraw a budget, if all go in this order."""
    left = [budget["allowed"] for budget in budgets]
    found: set[str] = set()
    for pod in pods:
        for at, budget in enumerate(budgets):
            if budget["app"] == pod["app"] and pod["name"] not in budget["disrupted"]:
                left[at] -= 1
                if left[at] < 0:
                    found.add(pod["name"])
    return found


def on_node(node: Case, case: Case) -> str | tuple[list[str], int]:
    """Victims, most important first, and how many break a budget; or why there are none."""
    me, nominated = case["me"], case["nominated"]
    here = [pod for pod in case["pods"] if pod["node"] == node["name"]]
    lower = sorted((pod for pod in here if pod["priority"] < me["priority"]), key=important)
    stay = [pod for pod in here if pod["priority"] >= me["priority"]]
    if not lower:
        return NONE
    if not passes(node, stay, me, nominated):
        return NO_ROOM
    breaking = broken(lower, case["budgets"])
    victims: list[str] = []
    for wanted in (True, False):
        for pod in lower:
            if (pod["name"] in breaking) is wanted:
                if passes(node, [*stay, pod], me, nominated):
                    stay.append(pod)
                else:
                    victims.append(pod["name"])
    return [pod["name"] for pod in lower if pod["name"] in victims], len(breaking.intersection(victims))


def cost(case: Case, victims: list[str], violations: int) -> tuple[float, ...]:
    """Smaller is better."""
    gone = [pod for pod in case["pods"] if pod["name"] in victims]
    top = max(pod["priority"] for pod in gone)
    starts = [float("inf") if pod["start"] is None else pod["start"] for pod in gone if pod["priority"] == top]
    return violations, top, sum(pod["priority"] + SHIFT for pod in gone), len(gone), -min(starts)
