"""A reply as it is planned: its text, its parts and its source.

A long answer is cut at the ends of sentences, so that each part is complete and together they are the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from agent_core.perception.compare import contains
from agent_core.perception.readings import ChatScreen, Side, Source
from agent_core.ports import Chosen, LedgerRow, Provenance, Record, ReplyState
from agent_core.reply.match import same_text
from agent_core.session import Cluster, Planned
from agent_core.texts.clean import clean_text

_JOINER = "\u200d"
_FLAG_LETTERS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))  # two of them make a flag
_BELONGS_BEFORE = frozenset({"Mn", "Mc", "Me", "Cf", "Sk"})
_LONGEST_EMOJI = 16  # code points: a family of four with its skin tones has eleven
_SENTENCE = re.compile(r"[^。！？!?；;\n]*(?:[。！？!?；;\n]+[”’」』）)\"']*|$)")
_CLAUSE = re.compile(r"[^，,、：: ]*(?:[，,、：: ]+|$)")


def in_parts(text: str, most: int) -> list[str]:
    """Return ``text`` in parts of at most ``most`` characters, stripped; [] if one part is enough.

    It is cut after sentences, else after clauses, else anywhere. A text with two equal parts stays whole, because a
    part that was sent is recognised by its words.
    """
    text = text.strip()
    if len(text) <= most:
        return []
    pieces = [piece for sentence in _cut(_SENTENCE, text) for piece in _small(sentence, most)]
    parts, current = [], ""
    for piece in pieces:
        if current and len((current + piece).strip()) > most:
            parts.append(current.strip())
            current = ""
        current += piece
    parts = [part for part in (*parts, current.strip()) if part]
    return parts if len(set(parts)) == len(parts) > 1 else []


def _cut(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group() for match in pattern.finditer(text) if match.group()]


def _small(sentence: str, most: int) -> list[str]:
    if len(sentence.strip()) <= most:
        return [sentence]
    return [piece for clause in _cut(_CLAUSE, sentence) for piece in _letters(clause, most)]


def _letters(clause: str, most: int) -> list[str]:
    """Split ``clause`` into pieces of at most ``most`` characters, never inside a letter or an emoji."""
    found, start = [], 0
    while len(clause) - start > most:
        ends = range(start + most, max(start, start + most - _LONGEST_EMOJI), -1)
        end = next((end for end in ends if _is_between(clause, end)), start + most)
        found.append(clause[start:end])
        start = end
    return [*found, clause[start:]]


def _is_between(text: str, at: int) -> bool:
    """Tell whether a letter or an emoji begins at ``at``: no accent, selector, joiner or skin tone, and not joined."""
    flag = text[at - 1] in _FLAG_LETTERS and text[at] in _FLAG_LETTERS
    return unicodedata.category(text[at]) not in _BELONGS_BEFORE and text[at - 1] != _JOINER and not flag


def planned_with(planned: Planned, chosen: Chosen, part_chars: int, *, person: str = "") -> Planned:
    """Return ``planned`` with the choice of the chooser or ``person`` from the records."""
    provenance = Provenance.COMPOSED if chosen.composed else Provenance.KNOWLEDGE
    return _with(planned, chosen.text, part_chars, provenance, person).model_copy(
        update={
            "record_id": ",".join(source.id for source in chosen.sources) or chosen.record.id,
            "record_source": chosen.record.source,
            "record_questions": [one.question for one in chosen.sources or (chosen.record,) if one.question],
            "score": chosen.record.score,
        }
    )


def planned_by_person(planned: Planned, text: str, part_chars: int, *, person: str) -> Planned:
    """Return ``planned`` with a text that a person wrote."""
    return _with(planned, text, part_chars, Provenance.PERSON, person)


def _with(planned: Planned, text: str, part_chars: int, provenance: Provenance, person: str) -> Planned:
    text = clean_text(text)  # every text that is typed into a chat passes here
    return planned.model_copy(
        update={
            "text": text,
            "parts": in_parts(text, part_chars),
            "provenance": provenance.value,
            "person": person,
            "record_id": "",
            "record_source": "",
            "record_questions": [],
            "score": None,
        }
    )


def stands(cluster: Cluster | None, planned: Planned) -> bool:
    """Tell whether all of ``planned`` was sent below these messages already, as the answer to another of them."""
    return cluster is not None and all(text in cluster.ours for text in planned.parts or [planned.text])


def chosen_from(candidate: Mapping[str, Any]) -> Chosen:
    """Return what a person has chosen with a candidate of a question card: a record, or several that make one text."""
    parts = tuple(record_of(part) for part in candidate.get("parts") or ())
    if parts:
        return Chosen(str(candidate["text"]), parts[0], composed=True, sources=parts)
    record = record_of(candidate)
    return Chosen(record.text, record)


def record_of(candidate: Mapping[str, Any]) -> Record:
    """Return the record that a candidate of a question card was made of."""
    score = candidate.get("score")
    return Record(
        id=str(candidate["id"]),
        text=str(candidate["text"]),
        question=str(candidate.get("question") or ""),
        score=float(score) if isinstance(score, int | float) else None,
        source=str(candidate["source"]),
    )


def bind(planned: Planned, chat: ChatScreen) -> None:
    """Bind ``planned`` to the chat as it was just read, because a person has been shown that state."""
    ours = list(takewhile(lambda bubble: bubble.side is Side.ME, reversed(chat.bubbles)))
    above = reversed(chat.bubbles[: len(chat.bubbles) - len(ours)])
    theirs = list(takewhile(lambda bubble: bubble.side is Side.THEM, above))
    planned.ours = [bubble.text for bubble in reversed(ours)]
    planned.cluster = [bubble.text for bubble in reversed(theirs)]
    planned.read_by = chat.source.value


def new_since(before: Sequence[str], planned: Planned) -> list[str]:
    """Return which of the customer's messages that ``planned`` is bound to now were not ``before``, oldest first."""
    now = planned.cluster
    new = [text for text in now if not any(same_text(text, old, Source.OCR) for old in before)]
    return new or now[len(before) :]  # the same words again


def planned_from(row: LedgerRow, cluster: Cluster) -> Planned:
    """Return the reply that a row contains, if the session of the run that chose it is gone."""
    return Planned(
        ledger_id=row.id,
        fingerprint=row.key.fingerprint,
        asked=row.question,
        cluster=list(cluster.messages),
        ours=list(cluster.ours),
        read_by=cluster.read_by,
        query=row.question if all(lines_of(row)) else "",
        text=row.text,
        parts=list(row.parts),
        part=row.part,
        provenance=row.provenance.value if row.provenance else "",
        record_id=row.record_id,
        record_source=row.record_source,
        score=row.score,
        person=row.person,
    )


def lines_of(row: LedgerRow) -> list[list[str]]:
    """Return for each line of a question the messages that contain it; none if the customer did not write the line."""
    return [[text for text in row.cluster if contains(text, line)] for line in row.question.split("\n")]


def sent_texts(row: LedgerRow) -> Sequence[str]:
    """Return the texts of this row that the ledger knows were sent."""
    if row.state is ReplyState.SENT:
        return row.parts or (row.text,)
    return row.parts[: row.part]
