"""DynamicResources: claims that cannot be used, pods without claims, what PostFilter says; hints."""

from typing import Any

import msgspec
import pytest

from podyard.framework.cycle_state import CycleState
from podyard.framework.events import HintAnswer
from podyard.framework.snapshot import ObjectsByName, Snapshot
from podyard.framework.status import Code, PluginFault
from podyard.objects import decoding
from podyard.plugins.dynamic_resources import hints
from podyard.plugins.dynamic_resources.args import Args
from podyard.plugins.dynamic_resources.plugin import REASON_NOT_SUPPORTED, DynamicResources
from tests.unit.framework.builders import table_of
from tests.unit.plugins import worlds

OWNED = {"name": "gpu", "resourceClaimTemplateName": "t"}
SHARED = {"name": "gpu", "resourceClaimName": "shared"}
DEVICE = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "0"}]}}


def pod(*claims: dict[str, str], made: tuple[dict[str, str], ...] = (), name: str = "me") -> Any:
    manifest = worlds.pod(containers=[], resourceClaims=list(claims))
    return worlds.view_of(manifest | {"status": {"resourceClaimStatuses": list(made)}}, name)


def claim(name: str, owner: str = "", *, deleting: bool = False, **status: Any) -> Any:
    owners = [{"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}] if owner else []
    metadata: dict[str, Any] = {"namespace": "default", "name": name, "uid": f"claim-{name}", "ownerReferences": owners}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decoding.decode("resourceclaims", msgspec.json.encode({"metadata": metadata, "status": status}))


class Cluster:
    """Where claims are found."""

    def __init__(self, *claims: Any) -> None:
        self._claims: ObjectsByName = {("default", one.metadata.name): one for one in claims}

    def objects(self, resource: str) -> ObjectsByName:
        assert resource == "resourceclaims"
        return self._claims

    def version(self, resource: str) -> int:
        return len(self.objects(resource))


def plugin(*claims: Any) -> DynamicResources:
    made = DynamicResources(Args())
    made.use_objects(Cluster(*claims))
    return made


def snapshot(*claims: Any) -> Snapshot:
    return Snapshot(table_of(), Cluster(*claims))


@pytest.mark.parametrize(
    ("pod", "claims", "reason"),
    [
        pytest.param(pod(SHARED), [], 'could not find claim "default/shared"', id="missing"),
        pytest.param(
            pod(SHARED), [claim("shared", deleting=True)], 'resourceclaim "shared" is being deleted', id="deleted"
        ),
        pytest.param(pod(OWNED), [], 'pod "default/me": ResourceClaim not created yet', id="not-made"),
        pytest.param(
            pod({"name": "gpu"}),
            [],
            'pod "default/me", spec.resourceClaim "gpu": none of the supported fields are set',
            id="unknown-kind",
        ),
        pytest.param(
            pod(OWNED, made=({"name": "gpu", "resourceClaimName": "mine"},)),
            [claim("mine", "another")],
            "ResourceClaim default/mine was not created for pod default/me (pod is not owner)",
            id="of-another-pod",
        ),
    ],
)
def test_a_claim_that_cannot_be_used_keeps_the_pod_out(pod: Any, claims: list[Any], reason: str) -> None:
    gate = plugin(*claims).pre_enqueue(pod.pod)
    answer = plugin().pre_filter(CycleState(), pod, snapshot(*claims)).status
    assert (gate.code, gate.reasons) == (answer.code, answer.reasons) == (Code.UNRESOLVABLE, (reason,))


def test_a_pod_whose_claims_are_there_is_refused_with_the_reason_that_devices_are_not_allocated() -> None:
    mine, view = claim("mine", "me"), pod(OWNED, made=({"name": "gpu", "resourceClaimName": "mine"},))
    assert plugin(mine).pre_enqueue(view.pod).ok
    answer = plugin().pre_filter(CycleState(), view, snapshot(mine)).status
    assert (answer.code, answer.reasons) == (Code.UNRESOLVABLE, (REASON_NOT_SUPPORTED,))


@pytest.mark.parametrize(
    "view", [pytest.param(pod(), id="no-claims"), pytest.param(pod(OWNED, made=({"name": "gpu"},)), id="none-needed")]
)
def test_a_pod_without_claims_passes(view: Any) -> None:
    assert plugin().pre_enqueue(view.pod).ok
    assert plugin().pre_filter(CycleState(), view, snapshot()).status.code == Code.SKIP


def test_postfilter_has_nothing_to_give_back_or_was_never_told_of_the_pod() -> None:
    view, state = pod(), CycleState()
    unread: Any = None
    lost = plugin().post_filter(state, view, snapshot(), unread).status
    assert (lost.code, lost.reasons) == (Code.ERROR, ("not found",))
    plugin().pre_filter(state, view, snapshot())
    said = plugin().post_filter(state, view, snapshot(), unread).status
    assert (said.code, said.reasons) == (Code.UNSCHEDULABLE, ("no new claims to deallocate",))


def test_filter_without_prefilter_says_what_is_missing() -> None:
    with pytest.raises(PluginFault, match=r"^not found$"):
        plugin().filter_one(CycleState(), pod(), snapshot(), 0)


def test_nobody_is_kept_out_where_claims_cannot_be_looked_up_and_hints_raise_which_counts_as_queue() -> None:
    blind = DynamicResources(Args())
    assert blind.pre_enqueue(pod(SHARED).pod).ok
    hint = next(one.hint for one in blind.events_to_register() if one.hint is not None)
    with pytest.raises(PluginFault):
        hint(pod(SHARED).pod, None, claim("shared"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, claim("shared"), (HintAnswer.QUEUE, "claim default/shared of the pod was created"), id="made"),
        pytest.param(
            None, claim("other"), (HintAnswer.SKIP, "the pod does not use claim default/other"), id="another-claim"
        ),
        pytest.param(
            claim("other", allocation=DEVICE),
            claim("other"),
            (HintAnswer.QUEUE, "claim default/other gave its devices back"),
            id="devices-free",
        ),
        pytest.param(
            claim("shared"),
            claim("shared"),
            (HintAnswer.SKIP, "the status of the pod's claim default/shared is as before"),
            id="same-status",
        ),
        pytest.param(
            claim("shared"),
            claim("shared", allocation=DEVICE),
            (HintAnswer.QUEUE, "the status of the pod's claim default/shared changed"),
            id="other-status",
        ),
    ],
)  # fmt: skip
def test_a_claim_that_changes(old: Any, new: Any, expected: Any) -> None:
    known = Cluster(claim("shared")).objects("resourceclaims")
    assert hints.after_claim_change(lambda: known, pod(SHARED).pod, old, new) == expected


def test_no_claim_helps_while_one_of_the_pod_is_missing() -> None:
    reason = 'the pod still cannot be scheduled: could not find claim "default/shared"'
    freed = claim("other", allocation=DEVICE), claim("other")
    assert hints.after_claim_change(dict, pod(SHARED).pod, *freed) == (HintAnswer.SKIP, reason)


def test_claims_that_were_made_for_the_pod() -> None:
    known = Cluster(claim("mine", "me")).objects("resourceclaims")
    before, after = pod(OWNED).pod, pod(OWNED, made=({"name": "gpu", "resourceClaimName": "mine"},)).pod
    other = pod(OWNED, name="other").pod
    assert hints.after_pod_change(lambda: known, before, before, after).answer == HintAnswer.QUEUE
    assert hints.after_pod_change(lambda: known, before, before, before).answer == HintAnswer.SKIP
    assert hints.after_pod_change(lambda: known, before, other, other).answer == HintAnswer.SKIP
