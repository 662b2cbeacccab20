"""Decides by code which text is sent without a person: it must answer all of a customer's own words.

A query only finds candidates. Even if the provider is sure of one by its score, or a model picks it, it is sent only if
``agent_core.reply.sureness`` finds nothing against it, no other candidate gives a different answer as surely, and
nothing in it was hidden.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from agent_core.ports import Chooser, Chosen, Record
from agent_core.reply.sureness.fit import asks_for, misfit, parts_misfit
from agent_core.texts.clean import is_clean

log = structlog.get_logger(__name__)


async def decide(chooser: Chooser | None, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
    """Return the answer to ``words``, all that the customer wrote of one question, or None if a person must decide.

    ``chooser`` is asked only if neither the words themselves nor the provider's score decide.
    """
    chosen = await _decided(chooser, words, query, records)
    if chosen is None:
        return None
    if not is_clean(chosen.text) or any(record.unclean for record in (chosen.record, *chosen.sources)):
        log.info("record_is_not_clean", record=chosen.record.id)
        return None
    return chosen


async def _decided(chooser: Chooser | None, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
    records = [record for record in records if record.text.strip()]
    asked = [record for record in records if asks_for(words, record)]
    if asked:
        return _whole(asked[0]) if len(_texts(asked)) == 1 else None
    # In threads: analysing long texts of a service would block the event loop for too long.
    sure = sure_record(records)
    if sure is not None and await asyncio.to_thread(_only_answer, words, sure, records):
        return _whole(sure)
    picked = await chooser.choose(words, query, records) if chooser is not None and records else None
    if picked is None:
        return None
    if picked.composed:
        return picked if await asyncio.to_thread(_composed_fits, words, picked) else None
    return picked if await asyncio.to_thread(_only_answer, words, picked.record, records) else None


def sure_record(records: Sequence[Record]) -> Record | None:
    """Return the best record if the provider is sure of it, else None.

    Without scores the order is all that is known. Then the result is None, too, if sure records have different texts.
    """
    best = next((record for record in records[:1] if record.sure and record.text.strip()), None)
    if best is None or best.score is not None:
        return best
    unscored = [record for record in records if record.sure and record.score is None]
    return best if len(_texts(unscored)) == 1 else None


def _only_answer(words: str, record: Record, records: Sequence[Record]) -> bool:
    """Tell whether ``record`` answers ``words`` and no other candidate that answers them has a different text."""
    if why := misfit(words, record):
        log.info("record_does_not_fit", record=record.id, why=why)
        return False
    rivals = [other for other in records if other.text.strip() != record.text.strip() and not misfit(words, other)]
    if rivals:
        log.info("records_contradict", records=[record.id, *(other.id for other in rivals)])
    return not rivals


def _composed_fits(words: str, chosen: Chosen) -> bool:
    """Tell whether the records of a composed reply answer all that the customer asks."""
    why = parts_misfit(words, chosen.sources)
    if why:
        log.info("composed_reply_does_not_fit", record=chosen.record.id, why=why)
    return not why


def _whole(record: Record) -> Chosen:
    return Chosen(record.text.strip(), record)


def _texts(records: Sequence[Record]) -> set[str]:
    return {record.text.strip() for record in records}
