"""Choosing the record that answers: only one that is sure, everything else is a person's decision."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.ports import Record


def choose(records: Sequence[Record], min_score: float = 0.0) -> Record | None:
    """The first record that its provider calls sure, has a text, and does not score below ``min_score`` (0–1).

    None where there is none: nothing is sent then without a person. A sure record without a score passes only where
    ``min_score`` is 0. Two sure records with different texts contradict each other: None.
    """
    fit = [record for record in records if record.sure and record.text.strip() and _reaches(record.score, min_score)]
    if not fit:
        return None
    best = fit[0]
    if best.score is None and any(other.text != best.text for other in fit[1:]):
        return None
    return best


def _reaches(score: float | None, min_score: float) -> bool:
    return min_score <= 0 if score is None else score >= min_score
