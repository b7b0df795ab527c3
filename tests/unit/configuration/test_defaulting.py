"""What is left out is filled in, and written back in full."""

import json

import pytest

from podyard import configuration
from podyard.plugins.in_tree import IN_TREE
from tests.unit.configuration.documents import document, loaded, names, one_profile, with_args


def args_of(text: str, plugin: str) -> dict[str, object]:
    written = configuration.load(text).written()["profiles"][0]["pluginConfig"]
    found = next(config["args"] for config in written if config["name"] == plugin)
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


def multi_point(**plugins: object) -> list[tuple[str, int]]:
    written = configuration.load(one_profile(plugins={"multiPoint": plugins})).written()
    return [(plugin["name"], plugin["weight"]) for plugin in written["profiles"][0]["plugins"]["multiPoint"]["enabled"]]


DEFAULT = [(name, plugin.weight or 0) for name, plugin in IN_TREE.items()]


def test_one_profile_gets_the_default_name_and_plugins() -> None:
    (profile,) = loaded().written()["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert [(plugin["name"], plugin["weight"]) for plugin in profile["plugins"]["multiPoint"]["enabled"]] == DEFAULT
    assert names(profile["pluginConfig"]) == sorted(names(profile["pluginConfig"]))


def test_a_default_plugin_that_is_enabled_again_keeps_its_place_and_takes_the_weight() -> None:
    found = multi_point(enabled=[{"name": "NodeAffinity", "weight": 9}, {"name": "TaintToleration"}])
    expected = dict(DEFAULT) | {"NodeAffinity": 9, "TaintToleration": 0}
    assert found == list(expected.items())


def test_one_that_is_disabled_and_enabled_goes_to_the_end() -> None:
    found = multi_point(disabled=[{"name": "ImageLocality"}], enabled=[{"name": "ImageLocality", "weight": 4}])
    assert found == [one for one in DEFAULT if one[0] != "ImageLocality"] + [("ImageLocality", 4)]


def test_a_star_leaves_only_what_is_enabled() -> None:
    enabled = [{"name": "PrioritySort"}, {"name": "DefaultBinder", "weight": 2}]
    assert multi_point(disabled=[{"name": "*"}], enabled=enabled) == [("PrioritySort", 0), ("DefaultBinder", 2)]


@pytest.mark.parametrize(
    ("plugin", "given", "completed"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": 0},
            {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0},
        ),
        ("DynamicResources", {"filterTimeout": "90s"}, {"filterTimeout": "1m30s", "bindingTimeout": "10m0s"}),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0},
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": False},
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "x/y", "weight": 0}]},
            {"resources": [{"name": "x/y", "weight": 1}]},
        ),
        ("PodTopologySpread", {"defaultConstraints": []}, {"defaultingType": "System"}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0, "shape": None}, {"bindTimeoutSeconds": 0}),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": []}},
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": n, "weight": 1} for n in ("cpu", "memory")],
                }
            },
        ),
    ],
)
def test_arguments_are_completed(plugin: str, given: object, completed: object) -> None:
    assert args_of(with_args(plugin, given), plugin) == completed


def test_arguments_of_plugins_that_are_not_enabled_are_left_out() -> None:
    text = one_profile(
        plugins={"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}},
        pluginConfig=[{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}}],
    )
    assert "VolumeBinding" not in names(configuration.load(text).written()["profiles"][0]["pluginConfig"])


def test_zero_durations_and_counts_of_the_connection_are_not_given() -> None:
    found = loaded(leaderElection={"leaseDuration": "0s"}, clientConnection={"qps": 0, "burst": 0}).written()
    assert found["leaderElection"]["leaseDuration"] == "15s"
    assert (found["clientConnection"]["qps"], found["clientConnection"]["burst"]) == (50, 100)


def test_contention_profiling_follows_profiling() -> None:
    assert not loaded(enableProfiling=False).values.enable_contention_profiling
    assert loaded(enableProfiling=False, enableContentionProfiling=True).values.enable_contention_profiling


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(document(), id="default"),
        pytest.param(
            one_profile(
                percentageOfNodesToScore=0,
                plugins={
                    "multiPoint": {
                        "disabled": [{"name": "NodePorts"}],
                        "enabled": [{"name": "ImageLocality", "weight": 9}],
                    },
                    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity", "weight": 2}]},
                },
                pluginConfig=[{"name": "DynamicResources", "args": {"filterTimeout": "1h"}}],
            ),
            id="profile",
        ),
        pytest.param(
            document(extenders=[{"urlPrefix": "http://a", "filterVerb": "f", "weight": 3, "nodeCacheCapable": True}]),
            id="extender",
        ),
    ],
)
def test_what_is_written_reads_as_the_same(text: str) -> None:
    first = configuration.load(text)
    again = configuration.load(json.dumps(first.written()))
    assert (again.written(), again.effective()) == (first.written(), first.effective())


@pytest.mark.parametrize(
    ("required", "written"),
    [({}, {"nodeSelectorTerms": None}), ({"nodeSelectorTerms": []}, {"nodeSelectorTerms": []})],
)
def test_no_list_of_terms_is_another_thing_than_an_empty_one(required: object, written: object) -> None:
    text = with_args("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    assert args_of(text, "NodeAffinity") == {
        "addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": written}
    }
    assert configuration.load(text).profiles()
