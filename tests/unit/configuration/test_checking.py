"""All that is wrong with a configuration, in one answer."""

import pytest

from podyard import configuration
from podyard.cli import scheduler_configuration
from podyard.cli.render import configuration as rendered

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
WRONG = (
    HEAD
    + """parallelisms: 3
profiles:
- schedulerName: a
  plugins:
    filter: {enabled: [{name: NodeResourceFit}, {name: PrioritySort}]}
    score: {enabled: [{name: Nope}]}
  pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 500}}
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: Nonsense}}}
- schedulerName: b
  plugins:
    postFilter: {enabled: [{name: "nosuch_module:Class"}]}
"""
)
PLACES = [
    "parallelisms",
    "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
    "profiles",
    "profiles[0].plugins.filter",
    "profiles[0].plugins.filter",
    "profiles[0].plugins.score",
    "profiles[0].pluginConfig[1].args.scoringStrategy.type",
]


def test_every_stage_and_every_plugin_is_told_of() -> None:
    found = configuration.faults(WRONG)
    assert [fault.field for fault in found] == PLACES
    told = [fault.detail for fault in found]
    assert told[3:6] == [
        "there is no plugin NodeResourceFit; did you mean NodeResourcesFit?",
        "plugin PrioritySort does not extend filter, only queueSort",
        "there is no plugin Nope; one of your own is written package.module:Class",
    ]
    assert "there is no module nosuch_module" in told[2]


def test_the_command_line_tells_it_in_one_answer_and_names_the_stage_that_fails() -> None:
    with pytest.raises(configuration.DecodeError) as caught:
        scheduler_configuration.of(WRONG)
    error = caught.value
    assert [fault.field for fault in (*error.faults, *error.further)] == PLACES
    assert rendered.verdict("f", error) == "f is not valid: 7 faults"
    assert scheduler_configuration.report(error)["stage"] == "decode"
    assert [one["field"] for one in scheduler_configuration.report(error)["further"]] == PLACES[1:]
    assert "PrioritySort does not extend filter" in scheduler_configuration.wrong("f", error).message


@pytest.mark.parametrize(
    ("rest", "faults"),
    [
        ("", []),
        ("profiles: 3\n", ["profiles: must be a list, is the number 3"]),
        (
            "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n",
            ["profiles[0].plugins.bind: at least one plugin must be enabled; the default one is DefaultBinder"],
        ),
    ],
)
def test_one_fault_is_told_once_and_none_not_at_all(rest: str, faults: list[str]) -> None:
    assert [str(fault) for fault in configuration.faults(HEAD + rest)] == faults
