"""The normalisation that most Score plugins share."""

from typing import Final

import numpy as np

from podyard.framework.interfaces import Scores

MAX_SCORE: Final = 100
"""Highest score of a plugin after normalisation; the lowest is 0."""


def default_normalize(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scores scaled so that the highest gets 100; with `reverse` the lower is the better, and 0 gets 100.

    Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/helper/normalize_score.go.
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
