"""A reply as it is planned: its text, its parts and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from agent_core.perception.compare import contains
from agent_core.perception.readings import ChatScreen, Side
from agent_core.ports import Chosen, LedgerRow, Provenance, Record, ReplyState
from agent_core.reply.parts import in_parts
from agent_core.session import Cluster, Planned
from agent_core.texts.clean import clean_text


def planned_with(planned: Planned, chosen: Chosen, part_chars: int, *, person: str = "") -> Planned:
    """``planned`` with what was chosen from records, by the chooser or by ``person``."""
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
    """``planned`` with what a person wrote."""
    return _with(planned, text, part_chars, Provenance.PERSON, person)


def _with(planned: Planned, text: str, part_chars: int, provenance: Provenance, person: str) -> Planned:
    text = clean_text(text)  # every text that is typed into a chat comes this way
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


def record_of(candidate: dict[str, object]) -> Record:
    """A candidate of a question card as the record that it was."""
    score = candidate.get("score")
    return Record(
        id=str(candidate["id"]),
        text=str(candidate["text"]),
        question=str(candidate.get("question") or ""),
        score=float(score) if isinstance(score, int | float) else None,
        source=str(candidate["source"]),
    )


def bind(planned: Planned, chat: ChatScreen) -> None:
    """Make ``planned`` one for the chat as it was read: what stands there now is what a person was shown."""
    ours = list(takewhile(lambda bubble: bubble.side is Side.ME, reversed(chat.bubbles)))
    above = reversed(chat.bubbles[: len(chat.bubbles) - len(ours)])
    theirs = list(takewhile(lambda bubble: bubble.side is Side.THEM, above))
    planned.ours = [bubble.text for bubble in reversed(ours)]
    planned.cluster = [bubble.text for bubble in reversed(theirs)]
    planned.read_by = chat.source.value


def planned_from(row: LedgerRow, cluster: Cluster) -> Planned:
    """The reply that a row holds, where the session of the run that chose it is gone."""
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
    """Return for each line of a question the messages that it stands in; none for what the customer did not write."""
    return [[text for text in row.cluster if contains(text, line)] for line in row.question.split("\n")]


def sent_texts(row: LedgerRow) -> Sequence[str]:
    """What the ledger knows to have left for this row."""
    if row.state is ReplyState.SENT:
        return row.parts or (row.text,)
    return row.parts[: row.part]
