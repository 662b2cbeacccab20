"""Choosing without a model: only what the knowledge base is sure of is sent, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.ports import Chosen, Record


class SureOnly:
    """A ``Chooser``: the record that ``sure_record`` finds, or a person."""

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        record = sure_record(records)
        return None if record is None else Chosen(record.text.strip(), record)


def sure_record(records: Sequence[Record]) -> Record | None:
    """The best record where the provider is sure of it; None where others without a score say something else.

    Without scores the order is all there is, and of several texts that are all called sure none is.
    """
    best = next((record for record in records[:1] if record.sure and record.text.strip()), None)
    if best is None or best.score is not None:
        return best
    rivals = {record.text.strip() for record in records if record.sure and record.score is None}
    return best if rivals == {best.text.strip()} else None
