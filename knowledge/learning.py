"""What people answer becomes waiting entries, which are never sent before a person approves them.

Of a customer's words only the question is kept, and what looks like a phone number, an e-mail address or an order
number is masked in it. Names and addresses cannot be told from other words: whoever approves looks at them. A person's
answer is kept as it is, although it may be meant for one customer: ``personal_data`` finds what to warn of before it is
approved.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agent_core.errors import InputRejected
from agent_core.sureness.plain import stripped
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import LONGEST_QUESTION, Entry, clean, line, make_entry

_OURS = "embedded:"
_MASK = "***"
_WIDE = "＠．－＋＿"
_GAP = r"[ \-–—()]"
_PERSONAL = re.compile(
    r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+"  # an e-mail address
    r"|(?<![A-Za-z])wxid_\w+"
    # A phone, an order, a parcel, a card: 7 digits and more, in groups whose last has four; "13 14 15 16" is none.
    rf"|(?<![A-Za-z\d])[A-Za-z]{{0,12}}[\-_]?\+?(?=(?:{_GAP}{{0,2}}\d){{7}})"
    rf"(?:\d{{7,}}|\d{{2,4}}(?:{_GAP}{{1,2}}\d{{3,4}})*{_GAP}{{1,2}}\d{{4,}})[A-Za-z\d]*"
    r"|(?<![A-Za-z\d])(?:[A-Za-z]*\d){8,}[A-Za-z]*"  # an order number with letters between
)


def personal_data(text: str) -> Sequence[str]:
    """What in ``text`` looks like a phone number, an e-mail address or an order number, to warn before approval."""
    return tuple(match[0] for match in _PERSONAL.finditer(_plain(text)))


def masked(text: str) -> str:
    """``text`` with three stars for each of them, and wide digits and letters as plain ones where there is any."""
    plain = _plain(text)
    return _PERSONAL.sub(_MASK, plain) if _PERSONAL.search(plain) else text


class Learning:
    """Learns from what people decide, for the embedded base."""

    def __init__(self, base: EmbeddedKnowledge) -> None:
        self._base = base

    async def from_reply(
        self, *, words: str, query: str, answer: str, record_id: str, record_source: str, person: str, contact: str
    ) -> Entry | None:
        """The waiting entry that was learnt from a reply which a person wrote or picked; None where nothing is new.

        A person's own text (``record_id`` "") is the answer to ``query``, or to the customer's ``words`` where that is
        blank. A record of ours that was picked learns the customer's words as another wording; one of another provider
        is kept with its text. Nothing is learnt from words of politeness alone, from a wording that means an entry
        already, live or waiting, or from a question that has this answer already. ``contact`` is masked.
        """
        if not stripped(words) or not clean(answer):
            return None
        origin = f"person:{person}"
        if record_id and record_source.startswith(_OURS):
            return await self._wording(record_id, _without(words, contact), origin)
        question = _without(query if stripped(query) else words, contact)
        return await self._question(question, clean(answer), origin)

    async def _question(self, question: str, answer: str, origin: str) -> Entry | None:
        question = question[:LONGEST_QUESTION].strip()
        entry = _made(question, answer, origin)
        if entry is None:
            return None
        return await self._base.add_unless(entry, lambda known: any(clean(one.answer) == answer for one in known))

    async def _wording(self, record_id: str, wording: str, origin: str) -> Entry | None:
        """A text with something masked in it is asked once and never again: it is no wording."""
        record = await self._base.get(record_id)
        if record is None or _MASK in wording:
            return None
        entry = _made(wording, record.answer, origin, alias_of=record.id)
        return await self._base.add_unless(entry, bool) if entry else None


def _made(question: str, answer: str, origin: str, alias_of: str = "") -> Entry | None:
    """None for what is no question, or too long to be one, or an answer that is too long to be kept."""
    if not stripped(question.replace(_MASK, "")):
        return None
    try:
        return make_entry(question=question, answer=answer, live=False, origin=origin, alias_of=alias_of)
    except InputRejected:
        return None


def _without(text: str, contact: str) -> str:
    """One line, without personal data and the contact's own name."""
    text = masked(line(text))
    name = line(contact)
    return text.replace(name, _MASK) if len(name) > 1 else text


def _plain(text: str) -> str:
    """Wide digits and letters as plain ones; other signs stay, so that a text keeps its punctuation."""
    return "".join(
        unicodedata.normalize("NFKC", char) if "！" <= char <= "～" and (char.isalnum() or char in _WIDE) else char
        for char in text
    )
