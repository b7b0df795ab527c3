"""Whose a hint is, in words."""

from podyard.proto.requeues import HintCall


def whose(hint: HintCall) -> str:
    """`InterPodAffinity's hint`, and whether kube-scheduler has it."""
    return f"{hint.plugin}'s hint" + (" (Podyard's own)" if hint.own else "")
