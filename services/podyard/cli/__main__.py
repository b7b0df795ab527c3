"""`podyard` and `python -m podyard.cli`."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    `version` and a bare `run NAME` need no parser: services start in half a second, most of it imports.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["version"], ["--version"]):
        from podyard.cli.commands.version import version

        return version()
    if len(words) == 2 and words[0] == "run" and not words[1].startswith("-"):
        from podyard.cli.serving import run_service

        return run_service(words[1])
    from podyard.cli import app

    return app.run(words)


if __name__ == "__main__":
    sys.exit(main())
