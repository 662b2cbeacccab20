"""The stage of a reply, derived from the session and the ledger row that it works on.

Drawn in ``docs/development/architecture.md``; the tests check every run against the drawing.
"""

from __future__ import annotations

from enum import StrEnum

from agent_core.ports import LedgerRow, ReplyState
from agent_core.session import Session


class ReplyStage(StrEnum):
    """The progress of a run with the customer's newest messages."""

    UNREAD = "unread"  # they have not been read in the contact's own chat
    READ = "read"  # each question has a row; nothing has been chosen for the next one
    WAITING = "waiting"  # a person is asked what to do about it
    CHOSEN = "chosen"  # its text is stored, and nothing of it typed
    TYPING = "typing"  # it is typed and read back
    SENDING = "sending"  # Send may have been touched
    UNCLEAR = "unclear"  # it has a red mark, or nothing shows whether it arrived
    ANSWERED = "answered"  # nothing is left to be answered


_OF_ROW = {
    ReplyState.TYPING: ReplyStage.TYPING,
    ReplyState.SENDING: ReplyStage.SENDING,
    ReplyState.UNKNOWN: ReplyStage.UNCLEAR,
    ReplyState.FAILED: ReplyStage.UNCLEAR,
}


def stage_of(session: Session, row: LedgerRow | None) -> ReplyStage:
    """Return the stage of a reply task.

    row: the current ledger row of ``session.planned``; None if nothing is planned.
    """
    if row is not None and session.planned is not None:
        if row.state in _OF_ROW:
            return _OF_ROW[row.state]
        if row.state is ReplyState.PLANNED and session.question is not None:
            return ReplyStage.WAITING
        if row.state is ReplyState.PLANNED and session.planned.text:
            return ReplyStage.CHOSEN
    if session.cluster is None:
        return ReplyStage.UNREAD
    return ReplyStage.READ if session.cluster.left else ReplyStage.ANSWERED
