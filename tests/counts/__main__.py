"""`python -m tests.counts`: count, and compare with what is recorded; `--record` records what was counted,
`--json` prints it."""

import argparse
import sys

import msgspec

from tests.counts import decodes, recorded
from tests.counts.tally import Tally


def main() -> int:
    """:return: exit code: 0 if every count is the recorded one"""
    options = _options()
    tally = Tally()
    decodes.install(tally)
    # the product is imported below only: what it binds at its import is counted
    from tests.simulation.seeds import fix_hashes

    fix_hashes()
    from tests.counts import cycles, stage

    counts = {name: round(found, 4) for name, found in sorted((cycles.count() | stage.count(tally)).items())}
    if options.json:
        print(msgspec.json.encode(counts).decode())
        return 0
    if options.record:
        recorded.write(counts)
        return 0
    faults = recorded.faults(counts, recorded.read())
    for name, found in counts.items():
        print(f"{found:9.3f}  {recorded.words(name)}")
    for text in faults:
        print(text, file=sys.stderr)
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.counts", description=__doc__)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the counts as one JSON object, compare nothing")
    form.add_argument("--record", action="store_true", help=f"write the counts to {recorded.PLACE}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
