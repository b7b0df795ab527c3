"""What directories take."""

import os
from pathlib import Path

import pytest

from podyard.node_agent.core.eviction.stats import FsUsage
from podyard.node_agent.host import disks
from podyard.node_agent.host.errors import HostError


def alone(path: Path) -> int:
    return path.lstat().st_blocks * 512


def test_a_directory_takes_itself_and_all_below_it(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 50_000)
    everything = [tmp_path, *tmp_path.rglob("*")]
    found = disks.directory(tmp_path)
    assert found == FsUsage(used_bytes=sum(map(alone, everything)), inodes=4)
    assert (found.used_bytes or 0) >= 50_000


def test_a_file_with_two_names_is_taken_once(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"x" * 50_000)
    os.link(tmp_path / "one", tmp_path / "two")
    assert disks.directory(tmp_path) == FsUsage(used_bytes=alone(tmp_path) + alone(tmp_path / "one"), inodes=2)


def test_what_is_behind_a_link_is_not_taken(tmp_path: Path):
    (tmp_path / "away").symlink_to("/usr", target_is_directory=True)
    assert disks.directory(tmp_path).inodes == 2


def test_a_link_is_no_directory_to_count(tmp_path: Path):
    (tmp_path / "link").symlink_to("/usr", target_is_directory=True)
    with pytest.raises(HostError, match=r"the directory .*/link cannot be counted"):
        disks.directory(tmp_path / "link")


def test_directories_are_counted_to_a_depth(tmp_path: Path):
    deep = os.open(tmp_path, os.O_RDONLY)
    for _ in range(disks.DEEPEST + 50):
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    assert disks.directory(tmp_path).inodes == 1 + disks.DEEPEST


def test_what_is_no_path_has_no_file_system(tmp_path: Path):
    with pytest.raises(HostError, match=f"the file system of {tmp_path}/no cannot be read: No such file"):
        disks.file_system(tmp_path / "no")
