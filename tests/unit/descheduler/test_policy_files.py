"""The policy file as the service reads it before it starts: all its faults, each with the file's name."""

from pathlib import Path

import pytest

from podyard.descheduler import making
from podyard.descheduler.settings import DeschedulerSettings
from podyard.runtime.settings import ServiceSettings, SettingsError

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def problems(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        making.check(ServiceSettings(), DeschedulerSettings(policy=str(path)))
    start = f"descheduler.policy: {path}: "
    assert all(one.startswith(start) for one in raised.value.problems)
    return tuple(one.removeprefix(start) for one in raised.value.problems)


def test_what_profiles_cannot_be_made_of_is_told_before_the_start_all_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        HEAD
        + """
nodeSelector: "a in b"
profiles:
- name: one
  plugins: {deschedule: {enabled: [RemoveFailedPods, RemoveDuplicates]}}
- name: two
  plugins: {filter: {enabled: [Nothing]}}
""",
    )
    assert len(found) == 5
    assert "found 'b' expected: '('" in found[0]
    assert "configures deschedule extension point of non-existing plugins: map[RemoveDuplicates:{}]" in found[1]
    assert 'unable to find "RemoveFailedPods" plugin config' in found[2]
    assert 'unable to find "RemoveDuplicates" plugin config' in found[3]
    assert found[4].startswith('unable to create "two" profile: ')


def test_a_class_of_priorities_is_looked_up_in_the_cluster_only(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    args = "{priorityThreshold: {name: gold}}"
    path.write_text(f"{HEAD}profiles: [{{name: p, pluginConfig: [{{name: DefaultEvictor, args: {args}}}]}}]\n")
    making.check(ServiceSettings(), DeschedulerSettings(policy=str(path)))


def test_a_plugin_of_the_user_that_is_not_there_is_told_with_profile_and_name(tmp_path: Path) -> None:
    text = HEAD + "profiles: [{name: mine, plugins: {balance: {enabled: ['nowhere.at_all:Plugin']}}}]\n"
    (found,) = problems(tmp_path, text)
    assert found.startswith("in profile mine: plugin nowhere.at_all:Plugin: there is no module nowhere; ")
