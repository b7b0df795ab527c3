"""Write the golden bytes of a release: `python -m tests.contract.proto.write_golden v0.2`. Refuses to touch a
release that has any."""

import sys
from pathlib import Path

from msgspec import inspect

from podyard.proto import catalogue, codec
from tests.contract.proto import filled

GOLDEN = Path(__file__).parent / "golden"


def main() -> None:
    directory = GOLDEN / sys.argv[1]
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        sys.exit(f"{directory} holds golden bytes already; a release's bytes are never rewritten")
    for message in catalogue.messages():
        (directory / f"{message.__name__}.json").write_bytes(codec.encode(filled.full(inspect.type_info(message))))


if __name__ == "__main__":
    main()
