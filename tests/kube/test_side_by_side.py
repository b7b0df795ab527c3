"""A lab answers kubectl as the reference did: scripts, and the answers that are kept of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kube.side_by_side import recorded, running, script, summary
from tests.kube.side_by_side.comparing import pairs
from tests.kube.side_by_side.running import Target


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", script.names())
def test_a_lab_answers_as_the_reference_did(
    name: str, kubectl: Path, lab_kubeconfig: Path, record_property: Callable[[str, object], None]
) -> None:
    asked = script.load(name)
    given = running.run(asked, Target(kubectl, lab_kubeconfig))
    found = list(pairs(asked, recorded.load()[name], given))
    wrong = [pair for pair in found if not pair.same and not pair.step.differs]
    same = sum(pair.same for pair in found)
    record_property(summary.COUNTS, [name, len(found), same, len(found) - same - len(wrong), len(wrong)])
    told = "\n\n".join("\n".join((pair.title, *pair.differences())) for pair in wrong)
    if wrong:
        pytest.fail(f"{len(wrong)} of {len(found)} steps differ (- the reference, + the lab)\n\n{told}", pytrace=False)
    alike = [pair.title for pair in found if pair.same and pair.step.differs]
    assert not alike, f"they differ no more: {alike}"
