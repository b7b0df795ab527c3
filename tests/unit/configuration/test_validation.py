"""Stage validate: everything that is not allowed, at once, in the reference's words."""

from typing import Any

import pytest
from msgspec import UNSET

from podyard import configuration
from podyard.configuration import FieldError, InvalidConfiguration
from tests.unit.configuration.documents import document, one_profile, with_args

ARGS = "profiles[0].pluginConfig[0].args"


def errors(text: str) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidConfiguration) as raised:
        configuration.load(text)
    assert len(raised.value.faults) == len(raised.value.errors)
    return raised.value.errors


def short(text: str) -> list[tuple[str, str, Any]]:
    return [(error.field, error.type.removeprefix("FieldValue"), error.bad_value) for error in errors(text)]


def test_all_faults_are_told_at_once() -> None:
    text = document(
        parallelism=0,
        percentageOfNodesToScore=101,
        podInitialBackoffSeconds=11,
        clientConnection={"burst": -1},
        leaderElection={"resourceLock": "endpoints", "retryPeriod": "-1s"},
        profiles=[{}, {"percentageOfNodesToScore": -1, "pluginConfig": [{"name": "EBSLimits"}]}],
        extenders=[{"bindVerb": "b"}, {"bindVerb": "b", "prioritizeVerb": "p"}],
    )
    assert sorted(short(text), key=str) == sorted(
        [
            ("clientConnection.burst", "Invalid", -1),
            ("leaderElection.retryPeriod", "Invalid", UNSET),
            ("leaderElection.resourceLock", "Invalid", "endpoints"),
            ("parallelism", "Invalid", 0),
            ("profiles[0].schedulerName", "Required", ""),
            ("profiles[1].schedulerName", "Required", ""),
            ("profiles[1].schedulerName", "Duplicate", UNSET),
            ("profiles[1].percentageOfNodesToScore", "Invalid", -1),
            ("profiles[1].pluginConfig[0]", "Invalid", "EBSLimits"),
            ("percentageOfNodesToScore", "Invalid", 101),
            ("podMaxBackoffSeconds", "Invalid", 10),
            ("extenders[1].weight", "Invalid", 0),
            ("extenders", "Invalid", "found 2 extenders implementing bind"),
        ],
        key=str,
    )


def test_leader_election_counts_only_if_it_is_on() -> None:
    configuration.load(document(leaderElection={"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "x"}))


def test_the_lease_must_outlast_the_renewal_and_the_sentence_carries_the_renewal() -> None:
    (error,) = errors(document(leaderElection={"leaseDuration": "5s", "renewDeadline": "9s"}))
    assert str(error) == 'leaderElection.leaseDuration: Invalid value: "9s": must be greater than `RenewDeadline`'


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [(".minCandidateNodesPercentage", "Invalid", 0), (".minCandidateNodesAbsolute", "Invalid", 0)],
        ),
        ("DynamicResources", {"bindingTimeout": "999ms"}, [(".bindingTimeout", "Invalid", UNSET)]),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, [(".hardPodAffinityWeight", "Invalid", 101)]),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu", "weight": 2}]},
            [(".resources[1].name", "Duplicate", "cpu"), (".resources[1].weight", "Invalid", 2)],
        ),
        ("VolumeBinding", {"shape": []}, [(".shape", "Invalid", UNSET)]),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, [(".bindTimeoutSeconds", "Invalid", -1)]),
        ("PodTopologySpread", {"defaultingType": "x"}, [(".defaultingType", "NotSupported", "x")]),
        (
            "PodTopologySpread",
            {
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
                    {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1},
                ]
            },
            [
                (".defaultingType", "Invalid", "System"),
                (".defaultConstraints[0].labelSelector", "Forbidden", ""),
                (".defaultConstraints[1].maxSkew", "Invalid", 0),
                (".defaultConstraints[1]", "Duplicate", "{zone, DoNotSchedule}"),
                (".defaultConstraints[2].topologyKey", "Required", ""),
                (".defaultConstraints[2].whenUnsatisfiable", "Required", ""),
            ],
        ),
        ("NodeResourcesFitArgs", None, [("", "Invalid", UNSET)]),
    ],
)
def test_arguments(plugin: str, args: Any, expected: list[tuple[str, str, Any]]) -> None:
    assert short(with_args(plugin, args)) == [(f"{ARGS}{field}", kind, value) for field, kind, value in expected]


def node_affinity(*expressions: dict[str, Any], preferred: bool = False, weight: int = 1, **term: Any) -> str:
    term["matchExpressions"] = list(expressions)
    if preferred:
        return with_args(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": term}]
                }
            },
        )
    required = {"nodeSelectorTerms": [{}, term]}
    return with_args("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def test_added_affinity_is_checked_as_selectors_are() -> None:
    text = node_affinity(
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": ["1", "y"]},
        {"key": "", "operator": "DoesNotExist"},
        {"key": "a", "operator": "In", "values": ["-"]},
        {"key": "a", "operator": "Near"},
        matchFields=[{"key": "metadata.name", "operator": "In", "values": []}, {"key": "x", "operator": "Exists"}],
    )
    path = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]"
    assert [(field.removeprefix(path), kind) for field, kind, _ in short(text)] == [
        (".matchExpressions[0].values", "Invalid"),
        (".matchExpressions[1].values", "Invalid"),
        (".matchExpressions[2].values", "Invalid"),
        (".matchExpressions[2].values[1]", "Invalid"),
        (".matchExpressions[3].key", "Invalid"),
        (".matchExpressions[4].values[0][a]", "Invalid"),
        (".matchExpressions[5].operator", "NotSupported"),
        (".matchFields[0].values", "Invalid"),
        (".matchFields[1].operator", "NotSupported"),
    ]


def test_preferred_terms_of_weight_0_are_not_looked_at() -> None:
    configuration.load(node_affinity({"key": "a", "operator": "Near"}, preferred=True, weight=0))
    assert len(errors(node_affinity({"key": "a", "operator": "Near"}, preferred=True, weight=1))) == 1


def test_a_key_can_be_wrong_in_two_ways_at_once() -> None:
    text = document(
        extenders=[{"urlPrefix": "http://a", "managedResources": [{"name": f"{'x' * 64}-/"}, {"name": "a.b/c."}]}]
    )
    details = [error.detail.split(" (")[0] for error in errors(text)]
    assert len(details) == 4
    assert details[1] == "name part must be non-empty"
    assert details[2].startswith("name part must consist of alphanumeric characters")


def test_a_key_has_one_slash_at_most() -> None:
    (error,) = errors(document(extenders=[{"urlPrefix": "http://a", "managedResources": [{"name": "a/b/c"}]}]))
    assert error.detail.startswith("a valid label key must consist of alphanumeric characters")
    assert error.detail.endswith("with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")


@pytest.mark.parametrize(
    "name", ["cpu", "kubernetes.io/x", "sub.kubernetes.io/x", "requests.example.com/x", f"{'a.' * 123}example/x"]
)
def test_only_extended_resources_can_be_managed(name: str) -> None:
    (error,) = errors(document(extenders=[{"urlPrefix": "http://a", "managedResources": [{"name": name}]}]))
    assert error.detail == "is an invalid extended resource name"


def test_queue_sort_must_be_spelled_alike_in_all_profiles() -> None:
    explicit = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}
    two = [{"schedulerName": "a", "plugins": explicit}, {"schedulerName": "b"}]
    assert short(document(profiles=two)) == [("profiles[1].plugins.queueSort", "Invalid", UNSET)]
    configuration.load(document(profiles=[{**profile, "plugins": explicit} for profile in two]))


def test_plugins_that_were_removed_are_named_at_a_single_point_only() -> None:
    enabled = {"enabled": [{"name": "GCEPDLimits"}]}
    (error,) = errors(one_profile(plugins={"filter": enabled}))
    assert (error.field, error.bad_value) == ("profiles[0].plugins.filter.enabled[0]", "GCEPDLimits")
    with pytest.raises(configuration.BuildError):
        configuration.load(one_profile(plugins={"multiPoint": enabled}))
