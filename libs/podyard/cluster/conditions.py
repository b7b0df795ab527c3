"""Conditions of an object joined with those that an agent reports."""

from podyard.objects.meta import Condition
from podyard.proto import facts


def joined_conditions(written: tuple[Condition, ...], reported: tuple[facts.Condition, ...]) -> tuple[Condition, ...]:
    """Conditions of the object, replaced by those of the same type that the agent reports; these come
    last."""
    if not reported:
        return written
    types = {condition.type for condition in reported}
    kept = [condition for condition in written if condition.type not in types]
    kept += [
        Condition(
            type=condition.type,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            last_transition_time=condition.last_transition_time or None,
        )
        for condition in reported
    ]
    return tuple(kept)
