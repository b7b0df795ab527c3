"""Which volumes a pod's unbound claims get on the chosen node: from Reserve to the decision, and from the
decision to PreBind."""

from typing import Final

from podyard.framework.cycle_state import StateKey
from podyard.proto.placement import VolumeChoice

CHOSEN: Final = StateKey[tuple[VolumeChoice, ...]]("ChosenVolumes")
"""One entry for each claim that gets a volume with the pod, `volume` empty if it is to be made. Written by
Reserve, which is what a `Decision` names; the binder writes what the decision names before it asks
PreBind."""
