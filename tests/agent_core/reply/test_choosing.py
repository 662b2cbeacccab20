"""Which record is sent without a person looking at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent_core.ports import Chosen, Record
from agent_core.reply.choosing import decide, sure_record

WORDS = "亲，几天能发货呀？谢谢"
SHIP = Record("ship", "付款后48小时内发出。", "几天能发货", score=0.4)
PRESALE = Record("presale", "预售的15天内发出。", "预售的几天能发货", score=0.4)


@dataclass
class Picks:
    """A chooser that takes the record with this number, whatever it says."""

    number: int
    asked: list[str] = field(default_factory=list)

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        self.asked.append(words)
        return Chosen(records[self.number].text, records[self.number])


def record(text: str, *, sure: bool = True, score: float | None = None) -> Record:
    return Record(id=text, text=text, sure=sure, score=score)


def test_the_best_one_if_the_provider_is_sure() -> None:
    best, other = record("a", score=0.9), record("b", score=0.8)
    assert sure_record([best, other]) == best
    assert sure_record([record("a", sure=False, score=0.9), other]) is None
    assert sure_record([]) is None
    assert sure_record([record("  ", score=1.0)]) is None


def test_without_scores_records_that_contradict_each_other_are_not_sure() -> None:
    assert sure_record([record("a"), record("b")]) is None
    assert sure_record([record("a"), record("a")]) == record("a")
    assert sure_record([record("a"), record("b", sure=False)]) == record("a")


async def test_the_very_words_need_no_score_and_no_chooser() -> None:
    chooser = Picks(0)
    chosen = await decide(chooser, WORDS, "发货", [PRESALE, SHIP])
    assert chosen == Chosen(SHIP.text, SHIP)
    assert chooser.asked == []
    as_alias = replace(PRESALE, aliases=("几天能发货？",))
    assert await decide(None, WORDS, "发货", [as_alias]) == Chosen(PRESALE.text, as_alias)


async def test_the_very_words_of_two_records_are_for_a_person() -> None:
    assert await decide(Picks(0), WORDS, "发货", [SHIP, replace(SHIP, id="other", text="三天内。")]) is None
    assert await decide(None, WORDS, "发货", [SHIP, replace(SHIP, id="twin")]) is not None


@pytest.mark.parametrize("words", ["预售的几天能发货", "几天能发货\n我要旧款", "不能发货吗", "20件几天能发货"])
async def test_neither_a_score_nor_a_pick_makes_a_record_fit_other_words(words: str) -> None:
    assert await decide(None, words, "几天能发货", [replace(SHIP, sure=True, score=0.99)]) is None
    assert await decide(Picks(0), words, "几天能发货", [SHIP]) is None


async def test_what_a_score_or_a_chooser_finds_is_sent_if_nothing_is_left_open() -> None:
    words = "什么时候能发货"
    assert await decide(None, words, words, [SHIP]) is None
    sure = replace(SHIP, sure=True)
    assert await decide(None, words, words, [sure]) == Chosen(SHIP.text, sure)
    assert await decide(Picks(1), words, words, [PRESALE, SHIP]) == Chosen(SHIP.text, SHIP)


async def test_another_record_that_answers_as_well_makes_a_pick_unsure() -> None:
    words = "什么时候能发货"
    rival = Record("rival", "三天内发出。", "多久能发货", score=0.39)
    assert await decide(Picks(0), words, words, [SHIP, rival]) is None
    assert await decide(Picks(0), words, words, [SHIP, replace(rival, text=SHIP.text)]) is not None


async def test_a_composed_reply_needs_all_words_in_its_records() -> None:
    @dataclass
    class Composes:
        async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
            return Chosen("付款后48小时内发出，可以开发票。", records[0], composed=True, sources=tuple(records))

    both = [SHIP, Record("bill", "可以开发票。", "能开发票吗")]
    assert await decide(Composes(), "几天能发货，能开发票吗", "发货", both) is not None
    assert await decide(Composes(), "几天能发货，能开专票吗", "发货", both) is None
