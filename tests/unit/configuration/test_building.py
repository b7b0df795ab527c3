"""Stage build: which plugins are asked where, in which order and with which weight; extenders; profiles and
their digests."""

from pathlib import Path
from typing import Any

import pytest

from podyard import configuration
from podyard.configuration import BuildError
from podyard.framework.profile import FIELDS
from podyard.plugins import registry, signatures
from podyard.plugins.defaults import default_profile
from podyard.plugins.in_tree import IN_TREE
from tests.unit.configuration.documents import document, loaded, names, one_profile, with_args


def points(**plugins: Any) -> dict[str, list[dict[str, Any]]]:
    return configuration.load(one_profile(plugins=plugins)).effective()["default-scheduler"]["plugins"]


def refused(text: str) -> BuildError:
    with pytest.raises(BuildError) as raised:
        configuration.load(text).profiles()
    return raised.value


def enabled(*plugins: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in plugins]}


DEFAULT_FILTERS = names(points()["filter"])


def test_plugins_of_a_point_that_multi_point_has_too_come_first() -> None:
    found = names(points(filter=enabled("VolumeZone", "NodeName"))["filter"])
    assert found == [
        "VolumeZone",
        "NodeName",
        *(name for name in DEFAULT_FILTERS if name not in ("VolumeZone", "NodeName")),
    ]


def test_plugins_that_only_the_point_has_come_last() -> None:
    without = {"disabled": [{"name": "NodePorts"}, {"name": "NodeName"}]}
    found = names(points(multiPoint=without, filter=enabled("NodePorts", "VolumeZone"))["filter"])
    expected = [name for name in DEFAULT_FILTERS if name not in ("NodePorts", "NodeName", "VolumeZone")]
    assert found == ["VolumeZone", *expected, "NodePorts"]


def test_a_plugin_disabled_and_enabled_at_a_point_comes_last() -> None:
    plugins = {**enabled("NodeName"), "disabled": [{"name": "NodeName"}]}
    assert names(points(filter=plugins)["filter"])[-1] == "NodeName"


def test_a_star_at_a_point_removes_what_multi_point_brings() -> None:
    assert names(points(filter={**enabled("NodePorts", "NodeName"), "disabled": [{"name": "*"}]})["filter"]) == [
        "NodePorts",
        "NodeName",
    ]


def test_the_weight_of_the_point_counts_before_that_of_multi_point_and_0_is_1() -> None:
    found = points(
        multiPoint={"enabled": [{"name": "TaintToleration", "weight": 7}, {"name": "ImageLocality", "weight": 5}]},
        score={"enabled": [{"name": "ImageLocality"}, {"name": "NodeAffinity", "weight": -2}]},
    )["score"]
    weights = {plugin["name"]: plugin["weight"] for plugin in found}
    assert (weights["TaintToleration"], weights["ImageLocality"], weights["NodeAffinity"]) == (7, 1, -2)


@pytest.mark.parametrize(
    ("plugins", "told"),
    [
        (
            {"score": enabled("NodePort")},
            "profiles[0].plugins.score: there is no plugin NodePort; did you mean NodePorts?",
        ),
        (
            {"multiPoint": enabled("Mine")},
            "multiPoint: there is no plugin Mine; one of your own is written package.module:Class",
        ),
        ({"placementScore": enabled("NodeName")}, "plugin NodeName does not extend placementScore"),
        ({"bind": enabled("NodeName")}, "plugin NodeName does not extend bind, only filter"),
        ({"filter": enabled("NodeName", "NodeName")}, "plugin NodeName is enabled twice"),
        (
            {"multiPoint": {"disabled": [{"name": "*"}], **enabled("NodeName", "NodeName")}},
            "plugin NodeName is enabled twice",
        ),
        (
            {"multiPoint": {"disabled": [{"name": "PrioritySort"}]}},
            "queueSort: exactly one plugin must be enabled, there are 0",
        ),
        ({"multiPoint": {"disabled": [{"name": "DefaultBinder"}]}}, "bind: at least one plugin must be enabled"),
    ],
)
def test_profiles_that_cannot_be_made(plugins: dict[str, Any], told: str) -> None:
    assert told in str(refused(one_profile(plugins=plugins)))


def test_all_faults_of_fits_arguments_are_told_with_their_full_path() -> None:
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 101}],
        "requestedToCapacityRatio": {
            "shape": [{"utilization": 5, "score": 11}, {"utilization": 5, "score": 0}, {"utilization": 4, "score": 0}]
        },
    }
    text = with_args("NodeResourcesFit", {"scoringStrategy": strategy, "ignoredResourceGroups": ["a/b"]})
    path = "profiles[0].pluginConfig[0].args"
    assert [fault.field.removeprefix(path) for fault in refused(text).faults] == [
        ".ignoredResourceGroups[0]",
        ".scoringStrategy.resources[0].weight",
        ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
        ".scoringStrategy.requestedToCapacityRatio.shape[0].score",
    ]


# ---- extenders ---------------------------------------------------------------------------------------------


def extender(**fields: Any) -> dict[str, Any]:
    return {"urlPrefix": "http://a", "filterVerb": "f", **fields}


def test_resources_that_an_extender_looks_after_are_ignored_by_every_profile() -> None:
    managed = [{"name": "a.b/c", "ignoredByScheduler": True}, {"name": "a.b/d"}]
    fit = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["x/y"]}}
    two = [{"schedulerName": "a", "pluginConfig": [fit]}, {"schedulerName": "b"}]
    found = loaded(extenders=[extender(managedResources=managed)], profiles=two)
    for profile in found.written()["profiles"]:
        args = {config["name"]: config["args"] for config in profile["pluginConfig"]}
        assert args["NodeResourcesFit"]["ignoredResources"] == ["a.b/c"]
    assert [plugin.args.ignored_resources for plugin in _fits(found)] == [("a.b/c",), ("a.b/c",)]


def _fits(found: configuration.Configuration) -> list[Any]:
    return [
        plugin
        for profile in found.profiles().values()
        for plugin in profile.plugins
        if plugin.name == "NodeResourcesFit"
    ]


def test_an_extender_cannot_look_after_resources_that_nothing_ignores() -> None:
    without = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    managed = [{"name": "a.b/c", "ignoredByScheduler": True}]
    assert "enable that plugin" in str(
        refused(document(extenders=[extender(managedResources=managed)], profiles=[without]))
    )


def test_extenders_that_may_fail_are_called_last_and_all_have_a_time_limit() -> None:
    found = loaded(extenders=[extender(ignorable=True, httpTimeout="1500ms"), extender(urlPrefix="http://b")])
    assert [(one.url_prefix, one.http_timeout_s) for one in found.extenders] == [("http://b", 5.0), ("http://a", 1.5)]
    assert [one["urlPrefix"] for one in found.written()["extenders"]] == ["http://a", "http://b"]


def test_files_of_certificates_must_be_there_only_if_they_are_used(tmp_path: Path) -> None:
    missing = str(tmp_path / "a.crt")
    loaded(extenders=[extender(tlsConfig={"certFile": missing})])
    assert f"cannot read {missing}" in str(
        refused(document(extenders=[extender(tlsConfig={"certFile": missing, "keyFile": missing})]))
    )
    assert "exclude each other" in str(
        refused(document(extenders=[extender(tlsConfig={"caFile": missing, "insecure": True})]))
    )
    assert "null byte" in str(refused(document(extenders=[extender(tlsConfig={"caFile": "\0"})])))
    broken = tmp_path / "b.crt"
    broken.write_text("nothing")
    for tls, told in (
        ({"caFile": str(broken)}, "no root certificate"),
        ({"certFile": str(broken), "keyFile": str(broken)}, "no pair"),
    ):
        assert told in str(refused(document(extenders=[extender(tlsConfig=tls)])))


# ---- profiles ----------------------------------------------------------------------------------------------


def test_default_plugins_have_the_methods_of_the_references_points_and_no_others() -> None:
    assert {
        entry.name: signatures.faults(entry.make) for entry in registry.IN_TREE if signatures.faults(entry.make)
    } == {}
    found = {entry.name: signatures.points_of(entry.make) for entry in registry.IN_TREE}
    assert found == {name: frozenset(plugin.points) for name, plugin in IN_TREE.items()}


def test_a_profile_asks_its_plugins_as_the_configuration_says() -> None:
    found = loaded(profiles=[{"plugins": {"filter": enabled("VolumeZone")}, "schedulerName": "a"}])
    profile, effective = found.profiles()["a"], found.effective()["a"]["plugins"]
    for point in FIELDS:
        if point not in ("score", "queueSort"):
            asked = [plugin.name for plugin in getattr(profile, FIELDS[point])]
            assert asked == names(effective[point]), point
    scores = [(entry.plugin.name, entry.weight) for entry in profile.score]
    assert scores == [(one["name"], one["weight"]) for one in effective["score"]]
    assert profile.queue_sort.name == "PrioritySort"


def test_without_a_file_the_default_profile_applies() -> None:
    (profile,) = configuration.default().profiles().values()
    assert (profile.name, profile.digest) == ("default-scheduler", default_profile().digest)


def digest(**profile: Any) -> str:
    (found,) = configuration.load(one_profile(**profile)).profiles().values()
    return found.digest


def test_the_digest_tells_points_order_weights_and_arguments_apart() -> None:
    found = [
        digest(),
        digest(plugins={"filter": {"disabled": [{"name": "NodePorts"}]}}),
        digest(plugins={"preFilter": {"disabled": [{"name": "NodePorts"}]}}),
        digest(plugins={"filter": enabled("NodePorts")}),
        digest(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 2}]}}),
        digest(plugins={"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}),
        digest(pluginConfig=[{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}}]),
    ]
    assert len(set(found)) == len(found)
    assert digest(pluginConfig=[{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600}}]) == digest()
    assert digest(schedulerName="other", percentageOfNodesToScore=5) == digest()


def test_profiles_have_plugins_of_their_own() -> None:
    first, second = loaded(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}]).profiles().values()
    assert not {id(plugin) for plugin in first.plugins} & {id(plugin) for plugin in second.plugins}


def test_what_has_no_effect_is_told() -> None:
    found = loaded(parallelism=4, percentageOfNodesToScore=50, profiles=[{"percentageOfNodesToScore": 0}])
    fields = [one.field for one in found.unused()]
    assert fields == ["parallelism", "percentageOfNodesToScore", "profiles[0].percentageOfNodesToScore"]
    assert loaded(parallelism=16, percentageOfNodesToScore=0, podMaxBackoffSeconds=99).unused() == ()
