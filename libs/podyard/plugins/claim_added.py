"""The hint about a new claim, of plugins that cannot judge a pod before its claims are there."""

from collections.abc import Callable

from podyard.framework import events
from podyard.framework.events import HintResult
from podyard.objects import claims
from podyard.objects.core import PersistentVolumeClaim, Pod
from podyard.plugins import hinted


def after_claim_add(
    its_own: Callable[[Pod, PersistentVolumeClaim], bool], pod: Pod, old: object | None, new: object | None
) -> HintResult:
    """Queue if the pod's claim is there now.

    :param its_own: whether a claim is one of the pod's, as the plugin looks at them
    """
    _, claim = hinted.present(PersistentVolumeClaim, old, new)
    if not its_own(pod, claim):
        return events.skip(f"the pod does not use the new claim {claims.full_name(claim.metadata)}")
    return events.queue(f"the pod's claim {claim.metadata.name} is there now")
