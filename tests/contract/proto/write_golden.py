"""Write the golden bytes that the coming release lacks: `python -m tests.contract.proto.write_golden v0.2`.
What is there is never rewritten: other releases wrote it, and have to be read."""

import sys
from pathlib import Path

from msgspec import inspect

from podyard.proto import catalogue, codec
from tests.contract.proto import filled

GOLDEN = Path(__file__).parent / "golden"


def main() -> None:
    directory = GOLDEN / sys.argv[1]
    directory.mkdir(parents=True, exist_ok=True)
    for message in catalogue.messages():
        golden = directory / f"{message.__name__}.json"
        if not golden.exists():
            golden.write_bytes(codec.encode(filled.full(inspect.type_info(message))))
            print(golden)


if __name__ == "__main__":
    main()
