"""Which record is sent without a person looking at it."""

from __future__ import annotations

from agent_core.choosing import SureOnly, sure_record
from agent_core.ports import Record


def record(text: str, *, sure: bool = True, score: float | None = None) -> Record:
    return Record(id=text, text=text, sure=sure, score=score)


def test_the_best_one_where_the_provider_is_sure() -> None:
    best, other = record("a", score=0.9), record("b", score=0.8)
    assert sure_record([best, other]) == best
    assert sure_record([record("a", sure=False, score=0.9), other]) is None
    assert sure_record([]) is None
    assert sure_record([record("  ", score=1.0)]) is None


def test_without_scores_records_that_contradict_each_other_are_not_sure() -> None:
    assert sure_record([record("a"), record("b")]) is None
    assert sure_record([record("a"), record("a")]) == record("a")
    assert sure_record([record("a"), record("b", sure=False)]) == record("a")


async def test_without_a_model_the_sure_record_is_sent_as_it_is_or_a_person_is_asked() -> None:
    best = record(" a ", score=0.9)
    chosen = await SureOnly().choose("words", "query", [best, record("b", score=0.8)])
    assert chosen is not None
    assert (chosen.text, chosen.record, chosen.composed) == ("a", best, False)
    assert await SureOnly().choose("words", "query", [record("a", sure=False, score=0.9)]) is None
