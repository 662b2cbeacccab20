"""The choice of the waiting contacts to answer now: pure decisions, without database and phone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from agent_core.perception.compare import same_name
from agent_core.session import WAITS_ELSEWHERE
from agent_core.sweep import IN_CHAT, UnreadLook, Waiting
from storage.runs import FAILED, QUEUED, RUNNING, STOPPED, SUCCEEDED, WAITING
from storage.sweeps import MarkRow

MOST_TRIES = 3  # for the same message; then it is tried less and less often, and people are informed
LAST_TRY = 7  # then only people are left
FIRST_REST = timedelta(hours=1)  # after the third try; twice as long after each further one
OUTAGE_REST = timedelta(minutes=15)  # if a service that the run needs was away, which is not the message's fault
REMEMBERED = timedelta(days=2)  # how long people are informed about a contact that was given up or stopped
_OUTAGES = ("model", "knowledge", "device", "config", "security.rate")
_NO_OUTAGES = ("model.refused", "model.format")
CUT_SHORT = "model.limit"  # of a run that succeeded: the limit left something unanswered
BLIND = "blind"  # the state of a contact when nothing can be read


class Left(StrEnum):
    """The reason why a waiting contact is not answered by this sweep."""

    AT_WORK = "at_work"  # a run for them is in line or active
    ASKED = "asked"  # a run of theirs waits for a person
    COOLING = "cooling"  # answered a moment ago
    SETTLED = "settled"  # handled before; nothing has changed since
    GIVEN_UP = "given_up"  # failed again and again
    STOPPED = "stopped"  # their run was stopped before it answered
    LATER = "later"  # failed while something was away; tried again after a while
    UNNAMED = "unnamed"  # no task can name them


@dataclass(frozen=True, slots=True)
class ChosenContact:
    """A contact who is answered now. ``tries``: how often this message was tried, with this time."""

    contact: str
    state: str
    tries: int = 1


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The contacts that a sweep answers now.

    ``start``: the longest waiting first.
    ``left``: contacts that wait and are not answered now.
    ``quiet``: contacts that were named and have nothing new.
    """

    start: tuple[ChosenContact, ...] = ()
    left: tuple[tuple[str, Left], ...] = ()
    quiet: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    def without_asked(self, asked: Collection[str]) -> SweepPlan:
        """Move the contacts of ``quiet`` that a question waits for to ``left``, because they have something new.

        Returns the new plan.
        """
        waits = [name for name in self.quiet if any(same_name(name, one) for one in asked)]
        left = tuple((name, Left.ASKED) for name in waits)
        return replace(self, left=self.left + left, quiet=tuple(name for name in self.quiet if name not in waits))

    def without_stopped(self, stopped: Sequence[str], targets: Sequence[str] | None) -> SweepPlan:
        """Add the contacts to ``left`` whose run was stopped before it answered, and who have written nothing since.

        Their chat was opened, so nothing of theirs is unread any more. ``targets``: as in ``plan``.
        Returns the new plan.
        """
        told = [*(one.contact for one in self.start), *(contact for contact, _ in self.left)]
        names = [name for name in stopped if _is_named(name, targets) and not any(same_name(name, one) for one in told)]
        quiet = tuple(name for name in self.quiet if not any(same_name(name, one) for one in names))
        return replace(self, left=self.left + tuple((name, Left.STOPPED) for name in names), quiet=quiet)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a sweep.

    asked: a person wants it now, so there is no cool-down, and failed contacts are tried again.
    blindly: named contacts are checked even if nothing can be read.
    """

    now: datetime
    cool_down: timedelta
    asked: bool = False
    blindly: bool = True


def plan(look: UnreadLook, targets: Sequence[str] | None, marks: Mapping[str, MarkRow], rules: Rules) -> SweepPlan:
    """Return the contacts to answer now. ``targets``: the contacts that the sweep is about; None for everybody."""
    waiting = list(look.waiting)
    if targets is not None:
        waiting = [one for one in waiting if any(same_name(one.contact, name) for name in targets)]
    named = {one.contact for one in waiting}
    waiting += [one for one in owed(marks, rules.now) if one.contact not in named and _is_named(one.contact, targets)]
    if targets is not None and not look.readable and rules.blindly:
        waiting += [Waiting(name, BLIND) for name in targets if not _is_in(name, waiting)]
    waiting.sort(key=lambda one: _since(marks.get(one.contact), rules.now))
    start: list[ChosenContact] = []
    left: list[tuple[str, Left]] = []
    for one in waiting:
        mark = marks.get(one.contact, MarkRow(one.contact))
        why = _why_not(one, mark, rules)
        if why is None:
            start.append(ChosenContact(one.contact, one.state, _tries(one, mark) + 1))
        else:
            left.append((one.contact, why))
    quiet = tuple(name for name in targets or () if not _is_in(name, waiting))
    return SweepPlan(tuple(start), tuple(left), quiet, tuple(one.contact for one in waiting))


def _why_not(one: Waiting, mark: MarkRow, rules: Rules) -> Left | None:
    if not mark.run_id:
        return None
    if mark.run_status in (QUEUED, RUNNING) or (mark.run_status == WAITING and mark.run_due):
        return Left.AT_WORK
    if mark.run_held and mark.run_status == WAITING:
        return Left.ASKED  # parked by a person, who resumes it
    newer = one.state not in (mark.state, BLIND)
    if mark.run_status == WAITING:
        # If their chat was open, it may well show the message that the person was asked about.
        as_asked = one.state.startswith(IN_CHAT) and not mark.state.startswith(IN_CHAT)
        return None if newer and not as_asked else Left.ASKED
    if rules.asked or newer or (mark.run_status == STOPPED and not mark.run_started):
        return None
    if mark.run_error == WAITS_ELSEWHERE and mark.waits:
        return Left.ASKED
    rested = [moment for moment in (mark.answered_at, mark.run_ended_at) if moment is not None]
    if rested and rules.now - max(rested) < rules.cool_down:
        return Left.COOLING
    if one.state == BLIND:
        return None
    if _is_unfinished(mark):
        return _given_up(mark, rules.now)
    if mark.run_status == SUCCEEDED and one.unread and mark.tries < MOST_TRIES:
        return None  # opening their chat removed the mark: the same words were written again in the same minute
    return Left.STOPPED if mark.run_status == STOPPED and not _answered_since(mark) else Left.SETTLED


def _answered_since(mark: MarkRow) -> bool:
    """Tell whether a reply has reached them since they began to wait."""
    return mark.answered_at is not None and (mark.waiting_since is None or mark.answered_at >= mark.waiting_since)


def _given_up(mark: MarkRow, now: datetime) -> Left | None:
    """Return why a failed or cut-short run's message is not tried now (not yet, or never again), or None if it is."""
    if mark.tries < MOST_TRIES:
        return None
    outage = _was_outage(mark)
    rest = OUTAGE_REST if outage else FIRST_REST * 2 ** min(mark.tries - MOST_TRIES, LAST_TRY)
    if now - (mark.run_ended_at or now) >= rest and (outage or mark.tries < LAST_TRY):
        return None
    return Left.LATER if outage else Left.GIVEN_UP


def _tries(one: Waiting, mark: MarkRow) -> int:
    """Return how often this very message was tried. Tries during an outage do not count beyond the third."""
    if not mark.run_id or mark.state != one.state or mark.run_status not in (FAILED, SUCCEEDED):
        return 0
    return min(mark.tries, MOST_TRIES - 1) if _was_outage(mark) else mark.tries


def _was_outage(mark: MarkRow) -> bool:
    return mark.run_error.startswith(_OUTAGES) and mark.run_error not in _NO_OUTAGES


def _is_unfinished(mark: MarkRow) -> bool:
    """Tell whether the run failed, hit a limit before answering the rest, or left it to a run that came to nothing."""
    left = mark.run_error in (CUT_SHORT, WAITS_ELSEWHERE)
    return mark.run_status == FAILED or (mark.run_status == SUCCEEDED and left)


def owed(marks: Mapping[str, MarkRow], now: datetime) -> list[Waiting]:
    """Return the contacts that still wait without an answer although nothing of theirs is unread any more.

    Either their run failed or was cut short, and opening their chat removed the mark from the list. Or they wrote into
    the chat that was open, and no run has begun to handle it.
    """
    return [
        Waiting(mark.contact, mark.state)
        for mark in marks.values()
        if _is_owed(mark, now) and not (mark.answered_at is not None and mark.answered_at >= _owed_since(mark, now))
    ]


def _is_owed(mark: MarkRow, now: datetime) -> bool:
    if _is_unfinished(mark):
        return mark.tries < MOST_TRIES or now - (mark.run_ended_at or now) < REMEMBERED
    not_begun = not mark.run_id or (mark.run_status == STOPPED and not mark.run_started)
    return not_begun and mark.state.startswith(IN_CHAT)


def _owed_since(mark: MarkRow, now: datetime) -> datetime:
    since = mark.run_ended_at if _is_unfinished(mark) else mark.waiting_since
    return since or now


def _is_named(contact: str, targets: Sequence[str] | None) -> bool:
    return targets is None or any(same_name(contact, name) for name in targets)


def _is_in(name: str, waiting: Sequence[Waiting]) -> bool:
    return any(same_name(one.contact, name) for one in waiting)


def _since(mark: MarkRow | None, now: datetime) -> datetime:
    """Return since when they wait. A contact who was answered since then, and writes again, waits from now on."""
    if mark is None or mark.waiting_since is None:
        return now
    answered = mark.answered_at is not None and mark.answered_at > mark.waiting_since
    return now if answered else mark.waiting_since
