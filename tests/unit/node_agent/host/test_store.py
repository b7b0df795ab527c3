"""What the runtime keeps on disk."""

import os
from pathlib import Path

from podyard.node_agent.host import store


def test_a_tree_is_removed_however_deep_it_is(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    at = os.open(tree, os.O_RDONLY)
    for _ in range(3 * store._DEEP):
        os.mkdir("d", dir_fd=at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    store._remove(tree)
    assert not tree.exists()


def test_what_is_behind_a_link_is_not_removed(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "away").symlink_to(tmp_path / "kept", target_is_directory=True)
    store._remove(tmp_path / "tree")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
