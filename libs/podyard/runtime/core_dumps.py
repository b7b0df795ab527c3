"""No core dump, and no look into the memory by who is not root: it holds keys.

The limit of core dumps alone is not enough: where `kernel.core_pattern` is a program, the kernel does not go
by it (core(5)). A process that is not dumpable leaves none at all (prctl(2), PR_SET_DUMPABLE), and nobody of
the same user attaches to it or reads its memory or environment from /proc (ptrace(2)).
"""

import os
import resource
import sys
from typing import Final

PR_SET_DUMPABLE: Final = 4


def forbid() -> str:
    """Forbid both, for this process and not for those that it starts: a new program is dumpable again, and
    may raise its limit.

    :return: what could not be forbidden, and why; empty: nothing
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if not sys.platform.startswith("linux"):
        return "debuggers of the same user: only Linux can"
    import ctypes  # here: on other systems, and for who switches it off, it is not needed

    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        return f"debuggers of the same user: {os.strerror(ctypes.get_errno())}"
    return ""
