"""A simulation in a program of its own, since it takes time, chance and the order of sets away from its
process."""

import subprocess
import sys


def play(module: str, *options: str, within_s: float) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE OPTIONS`, to its end."""
    return subprocess.run(
        [sys.executable, "-m", module, *options], capture_output=True, text=True, check=False, timeout=within_s
    )
