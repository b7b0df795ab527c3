"""Answers of HTTP extenders that are absurd, each of them to one pod: the pod's name says which.

`HARMS` is each verb with each bad payload of `poisons`, and with statuses; harm 17 is done to `bad-x-17`.
Verbs that begin with `SECOND` are those of a second extender, without which the scheduler goes on.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tests.faults import poisons
from tests.faults.hostile_plugin import PREEMPTS
from tests.support.extender_server import Answer

RESOURCES: Final = ("example.com/hostile", "example.com/hostile-too")
"""Who requests the one or the other is asked about at the first extender, or the second."""


class Harm(NamedTuple):
    """One absurd answer."""

    verb: str
    what: str
    pod: str
    """Name of the pod about which it is asked."""
    answer: int | bytes
    """A status, or a body."""


GOOD: Final[Mapping[str, Any]] = {
    "filter": {
        "Nodes": {
            "metadata": {},
            "items": [{"metadata": {"name": "hostile-1"}, "status": {"allocatable": {"cpu": "4"}}}],
        },
        "NodeNames": ["hostile-1"],
        "FailedNodes": {"hostile-2": "too loud"},
        "FailedAndUnresolvableNodes": {"hostile-3": "too old"},
        "Error": "",
    },
    "prioritize": [{"Host": "hostile-1", "Score": 7}],
    "preempt": {
        "NodeNameToVictims": {
            "crowded": {
                "Pods": [{"metadata": {"name": "a", "namespace": "default", "uid": "u"}}],
                "NumPDBViolations": 1,
            }
        },
        "NodeNameToMetaVictims": {"crowded": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}},
    },
    "bind": {"Error": "no"},
}
"""Answers in which one value is made absurd, by verb."""
STATUSES: Final = (204, 301, 404, 500, 503)
SECOND: Final = "ignorable-"
"""Before the verbs of the extender without which it goes on."""


def _harms() -> Iterator[Harm]:
    numbers = itertools.count()
    for verb, good in GOOD.items():
        more = f"-{PREEMPTS}" if verb == "preempt" else ""
        bad = [*((one.what, one.payload) for one in (*poisons.whole(), *poisons.spoilt(good)))]
        for what, answer in [*((f"status {code}", code) for code in STATUSES), *bad]:
            yield Harm(verb, what, f"bad-x-{next(numbers)}{more}", answer)
        if verb in ("filter", "prioritize"):
            for one in poisons.whole():
                yield Harm(f"{SECOND}{verb}", one.what, f"bad-x-{next(numbers)}", one.payload)


HARMS: Final = tuple(_harms())


def answers(met: set[str]) -> dict[str, Answer]:
    """What the extenders' server answers, by verb: harm to bad pods, nothing in particular to others.

    :param met: gets the names of the bad pods to which their harm was done
    """
    by_pod = {harm.pod: harm for harm in HARMS}

    def of(verb: str, content: Answer) -> Answer:
        def answer(body: dict[str, Any]) -> Any:
            name = body["PodName"] if "PodName" in body else body["Pod"]["metadata"]["name"]
            harm = by_pod.get(name)
            if harm is None or harm.verb != verb:
                return content(body)
            met.add(name)
            return harm.answer

        return answer

    content: dict[str, Answer] = {
        "filter": lambda body: {"Nodes": body["Nodes"]},
        "prioritize": lambda body: [],
        "preempt": lambda body: {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": one["metadata"]["uid"]} for one in victims["Pods"]]}
                for node, victims in body["NodeNameToVictims"].items()
            }
        },
        "bind": lambda body: {"Error": ""},
    }
    names = {**content, **{f"{SECOND}{verb}": content[verb] for verb in ("filter", "prioritize")}}
    return {verb: of(verb, said) for verb, said in names.items()}
