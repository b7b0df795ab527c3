"""README's way without a clone: its commands, played beside the wheel."""

import os
import re
import sys
from pathlib import Path
from typing import Final

from tests.release.archives import REPOSITORY, Release
from tests.release.bare import INSTALL_S, RUNTIME_LOCK, run
from tests.support import story

PLAYED: Final = ("uv tool install", "podyard demo")
"""pipx is not locked, so only its line is looked at: it must install the same file."""


def commands() -> list[str]:
    """README's indented lines that install a wheel and run what was installed."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    [block] = [found for found in re.findall(r"(?m)((?:^    .+\n)+)", readme) if "pipx install" in found]
    return [line.strip() for line in block.splitlines()]


def test_the_commands_install_the_wheel_and_the_demo_tells_its_story(release: Release, tmp_path: Path) -> None:
    pipx, install, demo = commands()
    assert (install.startswith(PLAYED[0]), demo) == (True, PLAYED[1])
    assert pipx.split()[-1] == install.split()[-1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON": sys.executable,
        # the versions that are tested: whether newer ones work is not this test's question
        "UV_CONSTRAINT": str(RUNTIME_LOCK),
        "NO_COLOR": "1",
    }
    run(["/bin/sh", "-c", install], cwd=release.wheel.parent, environment=environment, within_s=INSTALL_S)
    assert (tmp_path / "bin" / "podyard").exists()
    told = run(["/bin/sh", "-c", demo], cwd=tmp_path, environment=environment)
    assert story.untold(told) == [], told
