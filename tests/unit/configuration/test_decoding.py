"""Stage decode: syntax, types, unknown and duplicate fields, and which of them are only a matter of
strictness."""

import pytest

from podyard import configuration
from podyard.configuration import DecodeError
from tests.unit.configuration.documents import HEAD, document, loaded, with_args


def refused(text: str) -> DecodeError:
    with pytest.raises(DecodeError) as raised:
        configuration.load(text)
    return raised.value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "kind: missing; write kind: KubeSchedulerConfiguration", id="empty"),
        pytest.param("just text", "must be a mapping with apiVersion and kind", id="scalar"),
        pytest.param("kind: KubeSchedulerConfiguration", "apiVersion: missing", id="no version"),
        pytest.param(HEAD.replace("/v1", "/v1beta3"), "version kubescheduler.config.k8s.io/v1beta3", id="old version"),
        pytest.param(HEAD + "profiles: [", "line 4: not valid YAML", id="malformed"),
        pytest.param("{kind: x}", "what begins with a brace is read as JSON", id="flow mapping"),
        pytest.param(HEAD + "parallelism: '16'\n", 'must be a whole number, is the text "16"', id="text for number"),
        pytest.param(document(parallelism=8.0), "parallelism: must be a whole number", id="JSON fraction"),
        pytest.param(document(parallelism=True), "parallelism: must be a whole number, is true", id="truth for number"),
        pytest.param(document(parallelism=2**31), "outside of -2147483648 to 2147483647", id="int32"),
        pytest.param(
            document(podMaxBackoffSeconds=2**63), "podMaxBackoffSeconds: 9223372036854775808 is outside", id="int64"
        ),
        pytest.param(
            document(profiles=[{"schedulerName": 7}]), "profiles[0].schedulerName: must be text", id="number for text"
        ),
        pytest.param(document(profiles={}), "profiles: must be a list, is a mapping", id="mapping for list"),
        pytest.param(
            document(leaderElection={"leaseDuration": "5"}), "missing unit in duration", id="duration without unit"
        ),
        pytest.param(
            document(leaderElection={"leaseDuration": None}), "leaderElection.leaseDuration", id="null duration"
        ),
        pytest.param(
            document(extenders=[{"tlsConfig": {"caData": "%"}}]), "extenders[0].tlsConfig.caData", id="base64"
        ),
        pytest.param(
            with_args("VolumeBinding", "x"), "profiles[0].pluginConfig[0].args: must be a mapping", id="args text"
        ),
        pytest.param(
            with_args("NodeAffinity", {"kind": "VolumeBindingArgs"}),
            "must be of kind NodeAffinityArgs",
            id="foreign args",
        ),
        pytest.param(with_args("NodeAffinity", {"apiVersion": "v9"}), "version v9", id="args version"),
        pytest.param(
            HEAD.replace("KubeSchedulerConfiguration", "NodeAffinityArgs"), "kind: must be", id="args as file"
        ),
    ],
)
def test_what_is_no_configuration_is_refused_with_the_place(text: str, told: str) -> None:
    error = refused(text)
    assert told in str(error)
    assert not error.strict


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(HEAD + "foo: 1\n", ["foo: unknown field"], id="unknown"),
        pytest.param(
            document(profiles=[{"plugins": {"prefilter": {}}}]),
            ["profiles[0].plugins.prefilter: unknown field; did you mean preFilter?"],
            id="case counts",
        ),
        pytest.param(
            document(x=1, profiles=[{"pluginConfig": [{"name": "VolumeBinding", "args": {"y": 1}}]}]),
            ["x: unknown field", "profiles[0].pluginConfig[0].args.y: unknown field"],
            id="above and in arguments",
        ),
        pytest.param(
            HEAD + "parallelism: 4\nparallelism: 8\n",
            ['line 4: key "parallelism" is already set in this mapping'],
            id="YAML duplicate",
        ),
        pytest.param(
            document()[:-1] + ', "parallelism": 1, "parallelism": 2}',
            ["parallelism: duplicate field"],
            id="JSON duplicate",
        ),
        pytest.param(
            HEAD.replace("KubeSchedulerConfiguration", "NodeAffinityArgs") + "foo: 1\n",
            ["foo: unknown field"],
            id="other kind",
        ),
    ],
)
def test_unknown_and_duplicate_fields_alone_are_a_matter_of_strictness(text: str, told: list[str]) -> None:
    error = refused(text)
    assert [str(fault) for fault in error.faults] == told
    assert error.strict


def test_a_wrong_type_beside_an_unknown_field_is_no_matter_of_strictness() -> None:
    assert not refused(document(foo=1, parallelism="x")).strict
    assert not refused(document(foo=1, profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": 5}]}])).strict


def test_a_duplicate_key_in_yaml_hides_no_wrong_type() -> None:
    assert not refused(HEAD + "parallelism: 4\nparallelism: x\n").strict


def test_only_the_first_document_counts() -> None:
    assert configuration.load(f"{HEAD}parallelism: 3\n---\nnonsense: [\n").values.parallelism == 3


@pytest.mark.parametrize("version", ["", "kubescheduler.config.k8s.io/", "kubescheduler.config.k8s.io/v1"])
def test_arguments_need_no_version_of_their_own(version: str) -> None:
    found = configuration.load(with_args("VolumeBinding", {"apiVersion": version, "bindTimeoutSeconds": 5}))
    assert "'bindTimeoutSeconds': 5" in str(found.written())


def test_null_means_not_given() -> None:
    found = loaded(parallelism=None, profiles=[None], extenders=None, leaderElection=None)
    assert found.written() == loaded().written()


def test_numbers_that_yaml_writes_with_an_exponent_are_whole() -> None:
    assert configuration.load(f"{HEAD}podMaxBackoffSeconds: 1e3\n").values.pod_max_backoff_seconds == 1000


def test_arguments_of_unknown_plugins_may_be_anything_in_json_and_are_dropped() -> None:
    text = document(profiles=[{"pluginConfig": [{"name": "Mine", "args": 5}]}])
    twice = text.replace('"args": 5', '"args": {"a": 1, "a": 2}')
    assert configuration.load(text).written() == configuration.load(twice).written() == loaded().written()


def test_what_a_plugin_without_arguments_is_given_is_kept() -> None:
    found = configuration.load(with_args("TaintToleration", {"foo": "bar"})).written()
    assert {"name": "TaintToleration", "args": {"foo": "bar"}} in found["profiles"][0]["pluginConfig"]
