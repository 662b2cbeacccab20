"""What is sent without a person, of questions that nearly ask for a record and of those that do.

The records stand in a real knowledge store; each question goes the way of a customer's words: found, chosen, decided.
Those of ``turned`` skip the finding: the record that must not be sent is the only one that was found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.ports import Chooser, Chosen, Record
from agent_core.reply.choosing import decide
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from tests.near_misses.corpus import NearMiss, near_misses, paraphrases, records
from tests.near_misses.turned import by_hand, made, passages
from tests.support.days import todays
from tests.support.knowledge import open_knowledge

LEAST_SENT = 0.5  # of the fair paraphrases, with a chooser that knows all

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


class TakesTheFirst:
    """Knows nothing: it always picks the record that comes first."""

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        return Chosen(records[0].text, records[0])


@dataclass
class TakesTheRightOne:
    """Knows all."""

    right: str

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        return next((Chosen(record.text, record) for record in records if record.id == self.right), None)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def base(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedKnowledge]:
    folder: Path = tmp_path_factory.mktemp("near")
    store = await open_knowledge(folder / "knowledge.sqlite3")
    entries = [Entry(id=one.id, question=one.question, answer=one.answer, aliases=one.aliases) for one in records()]
    await store.add_all(entries)
    yield store
    await store.close()


_found: dict[str, Sequence[Record]] = {}  # what the base finds for words, which are asked once for each chooser


async def sent(base: EmbeddedKnowledge, messages: Sequence[str], chooser: Chooser | None) -> str:
    """The id of the record that goes out; "" if a person is asked."""
    words = "\n".join(messages)
    if words not in _found:
        _found[words] = await base.retrieve(words)
    chosen = await decide(chooser, words, words, _found[words])
    return chosen.record.id if chosen is not None else ""


async def test_no_near_miss_is_sure_without_a_chooser(base: EmbeddedKnowledge) -> None:
    wrong = [one for one in todays(near_misses(), 6) if await sent(base, one.messages, None) not in ("", one.other)]
    assert wrong == []


async def test_a_chooser_that_takes_the_first_record_sends_none(base: EmbeddedKnowledge) -> None:
    near = todays(near_misses(), 6)
    wrong = [one for one in near if await sent(base, one.messages, TakesTheFirst()) not in ("", one.other)]
    assert wrong == []


async def sent_alone(near: Sequence[NearMiss], *, as_passages: bool = False) -> list[NearMiss]:
    """Return what gets its record, which is all that was found: by its score, or picked."""
    known = {
        one.id: Record(one.id, one.answer)
        if as_passages
        else Record(one.id, one.answer, one.question, aliases=one.aliases)
        for one in records()
    }
    wrong = []
    for one in near:
        words, record = "\n".join(one.messages), known[one.record]
        by_score = await decide(None, words, words, [replace(record, sure=True, score=0.99)])
        if by_score or await decide(TakesTheFirst(), words, words, [record]):
            wrong.append(one)
    return wrong


@pytest.mark.parametrize("near", [made, by_hand])
async def test_one_word_more_or_less_or_elsewhere_is_never_sure(near: Callable[[], Sequence[NearMiss]]) -> None:
    assert await sent_alone(todays(near(), 6)) == []


async def test_an_answer_without_its_question_is_no_answer_to_what_nearly_asks_for_it() -> None:
    assert await sent_alone(todays(passages(), 6), as_passages=True) == []


async def test_choosing_pays(base: EmbeddedKnowledge) -> None:
    """A fair paraphrase is sent as often as not; without a chooser, nothing but its own record ever is."""
    fair = paraphrases()
    chosen = [await sent(base, one.messages, TakesTheRightOne(one.record)) for one in fair]
    alone = [await sent(base, one.messages, None) for one in fair]
    assert all(found in ("", one.record) for found, one in zip([*chosen, *alone], [*fair, *fair], strict=True))
    assert sum(map(bool, chosen)) >= LEAST_SENT * len(fair)
    assert sum(map(bool, alone)) < sum(map(bool, chosen))
