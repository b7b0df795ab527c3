"""Starts a command that ends with the process that asked for it. Run as
`python -I -S _launcher.py PARENT_PID COMMAND...`; imports the standard library only.

On Linux the kernel sends SIGKILL when the parent's thread ends (prctl PR_SET_PDEATHSIG survives execve), and
this process becomes the command. Elsewhere it stays and watches its standard input, a pipe whose other end
only the parent holds.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> NoReturn:
    """Become, or supervise, the command."""
    parent, command = int(arguments[0]), arguments[1:]
    if _dies_with_parent():
        if os.getppid() != parent:  # it ended before the signal was asked for
            sys.exit(1)
        os.execv(command[0], command)
    _supervise(command)


def _dies_with_parent() -> bool:
    """Ask the kernel for SIGKILL at the parent's end; False where it does not know that."""
    if not sys.platform.startswith("linux"):
        return False
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    return prctl is not None and prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0


def _supervise(command: list[str]) -> NoReturn:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)

    def on_sigterm(number: int, frame: object) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, on_sigterm)

    def until_parent_ends() -> None:
        while os.read(0, 1):
            pass
        child.kill()

    threading.Thread(target=until_parent_ends, daemon=True).start()
    sys.exit(child.wait())


if __name__ == "__main__":
    main(sys.argv[1:])
