"""`kubectl podyard ...`: kubectl runs `kubectl-podyard` with the words that follow, where it finds it on the
path. So its commands are those of `podyard`, and find the bus as they do.

Source: kubernetes v1.36.2, staging/src/k8s.io/kubectl/pkg/cmd/plugin.go, HandlePluginCommand.
"""

import sys
from collections.abc import Sequence
from typing import Final

OF_KUBECTL: Final = ("--kubeconfig", "--context", "--server", "--user", "--token", "--as")
"""Flags by which kubectl finds an API server and says who asks. None of them says where the bus is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    from podyard.cli.__main__ import main as podyard

    words = list(sys.argv[1:] if arguments is None else arguments)
    flag = next((word.partition("=")[0] for word in words if word.partition("=")[0] in OF_KUBECTL), None)
    if flag is not None:
        sys.stderr.write(
            f"error: {flag}: kubectl podyard asks the bus, not the API server of a kubeconfig\n"
            "hint: name a lab or servers with --nats or PODYARD_NATS_SERVERS; the only lab that runs needs no name\n"
        )
        return 2
    return podyard(words)


if __name__ == "__main__":
    sys.exit(main())
