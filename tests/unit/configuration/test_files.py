"""The file that settings name: from flag, environment and options file to what queue, scheduler and binder
run by."""

from pathlib import Path
from typing import Any

import pytest

from podyard.configuration import files
from podyard.plugins.defaults import default_profile
from podyard.queue.settings import QueueSettings
from podyard.runtime.settings import ServiceSettings, SettingsError, load_settings
from tests.unit.configuration.documents import HEAD


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        HEAD
        + "podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 33\nprofiles:\n- {schedulerName: a}\n- {schedulerName: b}\n"
    )
    return path


def settings(**sources: Any) -> ServiceSettings:
    common, _ = load_settings(QueueSettings, "queue", **sources)
    return common


def test_the_file_is_named_by_flag_environment_and_options_file(file: Path, tmp_path: Path) -> None:
    options = tmp_path / "options.yaml"
    options.write_text("scheduler_config: from-options\n")
    by_environment = {"PODYARD_SCHEDULER_CONFIG": "from-environment"}
    assert settings(config_file=str(options)).scheduler_config == "from-options"
    assert settings(config_file=str(options), environment=by_environment).scheduler_config == "from-environment"
    flags = {"scheduler_config": str(file)}
    assert settings(environment=by_environment, flags=flags).scheduler_config == str(file)
    assert settings().scheduler_config == ""


def test_all_profiles_of_the_file_are_run(file: Path) -> None:
    named = ServiceSettings(scheduler_config=str(file))
    found = files.profiles(files.of(named), named)
    assert list(found) == ["a", "b"]
    assert {profile.digest for profile in found.values()} == {default_profile().digest}


def test_without_a_file_the_default_profile_is_run() -> None:
    assert list(files.profiles(files.of(ServiceSettings()), ServiceSettings())) == ["default-scheduler"]


def test_backoff_reaches_the_queue_unless_its_own_settings_say_otherwise(file: Path) -> None:
    configuration = files.of(ServiceSettings(scheduler_config=str(file)))
    found = QueueSettings().completed(configuration).backoff()
    assert (found.initial_s, found.max_s) == (3, 33)
    found = QueueSettings(pod_max_backoff_s=0.0).completed(configuration).backoff()
    assert (found.initial_s, found.max_s) == (3, 0)
    found = QueueSettings().backoff()
    assert (found.initial_s, found.max_s) == (1, 10)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, ["cannot be read: No such file or directory"]),
        (b"\xff\xfe", ["is not UTF-8 text"]),
        (b"parallelism: 1", ["kind: missing; write kind: KubeSchedulerConfiguration"]),
        (
            HEAD.encode() + b"parallelism: 0\npodInitialBackoffSeconds: 0\n",
            [
                "parallelism: Invalid value: 0: should be",
                "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            ],
        ),
        (
            HEAD.encode() + b"profiles: [{plugins: {filter: {enabled: [{name: 'x:Y'}]}}}]\n",
            ["profiles: plugin x:Y: there is no module x"],
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_full(content: bytes | None, told: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as raised:
        files.check(ServiceSettings(scheduler_config=str(path)), None)
    assert len(raised.value.problems) == len(told)
    for problem, expected in zip(raised.value.problems, told, strict=True):
        assert problem.startswith(f"scheduler configuration {path}: {expected}")
