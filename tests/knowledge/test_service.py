"""One rule for what the services over HTTP answer: scores, the best records, and texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.texts.clean import is_clean
from knowledge.entries import LONGEST_ANSWER
from knowledge.service import MOST_RECORDS, Hit, best, records_of, unit_score
from simulator.knowledge.answers import NO_SCORES

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
HUGE = st.integers(min_value=10**300, max_value=10**4000)
SCORES = JSON | HUGE | HUGE.map(lambda number: -number) | HUGE.map(str) | st.floats(0, 1) | st.floats(0, 1).map(str)


@given(SCORES, st.floats(min_value=1e-300, max_value=1e300))
def test_a_score_is_a_share_or_none(value: object, scale: float) -> None:
    score = unit_score(value, scale)
    assert score is None or 0 <= score <= 1


@pytest.mark.parametrize("value", NO_SCORES, ids=lambda value: str(value)[:20])
def test_what_is_no_score_is_none(value: object) -> None:
    assert unit_score(value) is None


@pytest.mark.parametrize(
    ("value", "scale", "score"),
    [(0.5, 1, 0.5), (1, 1, 1.0), (0, 1, 0.0), ("0.75", 1, 0.75), (87, 100, 0.87), (1.005, 1, 1.0), (-0.3, 1, 0.0)],
)
def test_what_is_a_score_is_read(value: object, scale: float, score: float) -> None:
    assert unit_score(value, scale) == score


@given(st.lists(st.floats(0, 1), max_size=200))
def test_the_best_fifty_are_kept_in_the_order_of_the_service(scores: list[float]) -> None:
    kept = best(list(enumerate(scores)), lambda raw: raw[1])
    assert len(kept) == min(len(scores), MOST_RECORDS)
    assert list(kept) == sorted(kept)
    assert sorted(score for _, score in kept) == sorted(scores)[-MOST_RECORDS:]


def test_without_a_score_for_each_the_first_ones_are_the_best() -> None:
    found = [*([0.1] * 60), None, *([0.9] * 60)]
    assert best(found, lambda raw: raw) == found[:MOST_RECORDS]


@given(st.lists(st.builds(Hit, st.text(), st.text(), st.text(), st.text(), SCORES), max_size=5), st.floats(0, 1))
def test_whatever_was_given_a_record_can_be_stored_and_its_text_is_clean(hits: list[Hit], min_score: float) -> None:
    for record in records_of(hits, provider="http", min_score=min_score):
        assert record.text
        assert is_clean(record.text)
        assert not record.sure or not record.unclean
        for text in (record.id, record.text, record.question, record.source):
            assert "\x00" not in text
            assert text.encode().decode() == text
        assert record.score is None or 0 <= record.score <= 1
        enough = min_score <= 0 if record.score is None else record.score >= min_score
        assert record.sure is (enough and not record.unclean)


def test_what_is_longer_than_an_answer_is_left_out() -> None:
    def hits(**changed: Any) -> list[Hit]:
        return [Hit(**({"text": "短", "question": "问"} | changed))]

    assert records_of(hits(text="长" * LONGEST_ANSWER), provider="http", min_score=0.5)
    assert records_of(hits(text="长" * (LONGEST_ANSWER + 1)), provider="http", min_score=0.5) == ()
    assert records_of(hits(question="长" * (LONGEST_ANSWER + 1)), provider="http", min_score=0.5) == ()


def test_names_are_of_one_line_and_short() -> None:
    (record,) = records_of([Hit("a", id="x\n\x00y" * 99, document="文\u202e件\n" * 99)], provider="dify", min_score=0)
    assert len(record.id) <= 200
    assert record.id.startswith("x yx")
    assert len(record.source) <= 205
    assert json.loads(json.dumps(record.source)).startswith("dify:文件 文件")
