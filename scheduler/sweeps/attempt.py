"""A sweep's attempt: the cheap check of the chat list, and the runs for contacts who have something new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from agent_core import extras
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device
from agent_core.errors import CommandFailed, InputRejected
from agent_core.perception.compare import same_name
from agent_core.perception.observer import TreeUse
from agent_core.perception.reader import ScreenReader
from agent_core.policies.detect import reply_task
from agent_core.ports import Lease
from agent_core.sweep import Aside, ListMemory, LookOutcome, SetAside, UnreadLook, Waiting, look_for_unread
from agent_core.texts import Listed, say
from scheduler.runs.executor import AttemptOutcome, language_of
from scheduler.runs.service import ASKED_SWEEP, SWEEP, WATCH
from scheduler.sweeps.order import BY_WATCH, QUIET_HOURS, SweepOrder, reply_to
from scheduler.sweeps.plan import REMEMBERED, Left, Rules, SweepPlan, owed, plan
from scheduler.times.shop import quiet_of
from storage.contacts import Contacts
from storage.engine import Database
from storage.ledger import StoredLedger
from storage.questions import OPEN, QuestionRow, Questions
from storage.runs import NewRun, RunRow, Runs
from storage.schedules import Schedules
from storage.sweeps import MarkRow, NewSweep, NewSwept, SweepRow, Sweeps, SweptApp

MOST_QUESTIONS = 1000  # the most open questions that are read
RECENT = 10  # runs of a schedule in which earlier looks are searched; a run that failed may have none
_READABLE = (LookOutcome.READ, LookOutcome.UNCHANGED)  # outcomes after which unknown names are reported

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SweepEyes:
    """The parts that a sweep needs besides the phone."""

    reader: ScreenReader
    tree: TreeUse = "auto"
    cool_down_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sweep's result and the runs that follow from it, to be stored and started by ``Sweeps``."""

    sweep: NewSweep
    start: tuple[NewSwept, ...]


async def prepare(db: Database, row: RunRow, device: Device, eyes: SweepEyes, lease: Lease) -> Prepared:
    """Check the phone's chat list, with the lease held, and choose the contacts to answer.

    Raises CommandFailed if the list cannot be reached or read, and InputRejected if no contact has the tags.
    """
    order = SweepOrder.of(row.options, row.task)
    app, sweeps, place = order.profile, Sweeps(db), SweptApp(device.serial, order.app)
    targets, known = await contacts_of(db, order, device.serial)
    watches = bool(row.options.get(BY_WATCH))
    if targets == [] and not watches:
        raise no_tag(order.tags)
    before = ListMemory.of(await sweeps.memory(place))

    async def keep(one: Waiting) -> None:
        await sweeps.keep(place, one.contact, one.state)

    look = await look_for_unread(
        device,
        eyes.reader,
        app,
        before=before,
        known=known,
        people=await sweeps.people(place),
        lease=lease,
        tree=eyes.tree,
        keep=keep,
    )
    _check(look, app, targets)
    cool_down = timedelta(seconds=eyes.cool_down_seconds)
    rules = Rules(db.now(), cool_down, asked=row.planned_at is None, blindly=not watches)
    marks = await sweeps.marks(place)
    chosen = plan(look, targets, marks, rules)
    still_owed = {one.contact for one in owed(marks, rules.now)}
    runs = [(one, reply_to(one.contact, app, language_of(row))) for one in chosen.start]
    start = tuple(
        NewSwept(one.contact, one.state, one.tries, _run(row, task, one.contact, device.serial))
        for one, task in runs
        if task is not None
    )
    unnamed = [one.contact for one, task in runs if task is None]
    told_before = before.aside if before is not None and not rules.asked else ()
    asked = await _asked(db, order, device.serial, chosen)
    chosen = chosen.without_asked(asked)
    stopped = await StoredLedger(db).left_by_stop(device.serial, order.app, since=rules.now - REMEMBERED)
    chosen = chosen.without_stopped(stopped, targets)
    new = NewSweep(
        place,
        look.outcome.value,
        contacts=len(targets) if targets is not None else len(look.waiting) + len(look.seen),
        calls=look.calls,
        memory=look.memory.data() if look.memory is not None else None,
        waiting=chosen.waiting,
        seen=[name for name in look.seen if name not in still_owed],
        details=_details(look, chosen, unnamed, told_before, everybody=targets is None)
        | {"unknown": await _unknown(db, order, look, chosen, marks), "questions": _questions(chosen, asked)},
    )
    log.info("sweep_looked", run_id=row.id, outcome=look.outcome.value, calls=look.calls, started=len(start))
    return Prepared(new, start)


async def sweep_attempt(db: Database, row: RunRow, device: Device, eyes: SweepEyes, lease: Lease) -> AttemptOutcome:
    """Do a worker's attempt of a sweep.

    ``waiting``: its runs continue. A repeated attempt starts no contact's run twice.
    """
    sweeps = Sweeps(db)
    looked = await sweeps.get(row.id)
    if looked is None:
        if await in_quiet_hours(db, row, db.now()):
            return AttemptOutcome("succeeded", QUIET_HOURS)
        prepared = await prepare(db, row, device, eyes, lease)
        if await sweeps.looked(row.id, row.attempt, prepared.sweep, prepared.start) is None:
            return AttemptOutcome("stopped")
    details = prepared.sweep.details if looked is None else looked.details
    said = await not_found(db, row, details)
    return AttemptOutcome("waiting" if await sweeps.waiting_runs(row.id) else "succeeded", said)


async def not_found(db: Database, row: RunRow, details: Mapping[str, Any]) -> str:
    """Return the closing message of a sweep for named contacts that nobody knows; "" if there is nothing new to report.

    A sweep that began by itself reports those that were known, or not named, at the schedule's last sweep.
    """
    unknown = [str(name) for name in details.get("unknown") or ()]
    if unknown and row.planned_at is not None:
        before = [one for one in await looks_before(db, row) if one.outcome in _READABLE]
        told = before[0].details.get("unknown") or () if before else ()
        unknown = unknown if set(unknown) - set(told) else []
    return say(language_of(row), "sweep.not_found", names=Listed(unknown)) if unknown else ""


async def looks_before(db: Database, row: RunRow) -> list[SweepRow]:
    """Return the looks of the sweeps that the same schedule began before this one, the newest first."""
    if not row.schedule_id:
        return []
    earlier = await Runs(db).find(schedule_id=row.schedule_id, before=row.id, limit=RECENT)
    looks = [await Sweeps(db).get(run.id) for run in earlier]
    return [looked for looked in looks if looked is not None]


async def in_quiet_hours(db: Database, row: RunRow, now: datetime) -> bool:
    """Tell whether a sweep, or a run of it, may not begin because its schedule is in its quiet hours.

    A run that a person has started by hand is not a tick of the schedule, and may always begin.
    """
    sweep = await Runs(db).get(row.parent_id) if row.parent_id else row
    if sweep is not None and sweep.planned_at is None and not sweep.options.get(BY_WATCH):
        return False
    schedule = await Schedules(db).get(sweep.schedule_id) if sweep is not None and sweep.schedule_id else None
    return schedule is not None and bool(schedule.quiet) and quiet_of(schedule.quiet, schedule.timezone).holds(now)


async def contacts_of(db: Database, order: SweepOrder, serial: str) -> tuple[list[str] | None, list[str]]:
    """Return the names of the contacts who are meant (None: everybody), and of these and all saved contacts."""
    rows = [row for row in await Contacts(db).all(app=order.app) if row.serial in ("", serial)]
    known = [row.name for row in rows]
    if order.everybody:
        return None, known
    tagged = [row.name for row in rows if set(row.tags) & set(order.tags)]
    targets = list(dict.fromkeys([*order.names, *tagged]))
    return targets, list(dict.fromkeys([*known, *targets]))


async def unknown_tags(db: Database, order: SweepOrder) -> list[str]:
    """Return those of an order's tags that no contact has."""
    if not order.tags:
        return []
    used = {tag for row in await Contacts(db).all(app=order.app) for tag in row.tags}
    return [tag for tag in order.tags if tag not in used]


def no_tag(tags: Sequence[str]) -> InputRejected:
    named = " ".join(f"#{tag}" for tag in tags)
    return InputRejected(
        f"No contact has the tag {named}.", advice="Give it to contacts with /contacts.", key="no_tag", tags=named
    )


def _check(look: UnreadLook, app: AppProfile, targets: Sequence[str] | None) -> None:
    if look.waiting or look.readable:
        return
    if look.outcome is LookOutcome.NO_LIST:
        raise CommandFailed(
            f"{app.name} did not come to its list of chats.",
            advice="Look at the phone: is somebody logged in, is a dialogue open?",
            key="no_list",
            app=app.name,
        )
    if not targets:
        command = extras.install_command("ocr")
        raise CommandFailed(
            "The list of chats cannot be read.",
            advice=f"Allow the accessibility tree, name the contacts, or install OCR: {command}",
            key="list_unreadable",
            command=command,
        )


def _run(row: RunRow, task: str, contact: str, serial: str) -> NewRun:
    kept = {name: row.options[name] for name in ("lang", BY_WATCH) if name in row.options}
    options = {"contact": contact, **kept}
    return NewRun(
        task,
        serial,
        priority=WATCH if BY_WATCH in kept else ASKED_SWEEP if row.planned_at is None else SWEEP,
        options=options,
        requested_by=row.requested_by,
        chat=row.chat,
        parent_id=row.id,
    )


async def _unknown(
    db: Database, order: SweepOrder, look: UnreadLook, chosen: SweepPlan, marks: Mapping[str, MarkRow]
) -> list[str]:
    """Return those who were named, have nothing new, and are known neither to us nor to the list. It may be a typo."""
    if not look.readable:
        return []
    rows = [row.name for row in await Contacts(db).all(app=order.app)]
    shown = [*(one.contact for one in look.waiting), *look.seen, *(one.name for one in look.aside)]
    known = [*rows, *marks, *shown]
    return [name for name in chosen.quiet if name in order.names and not any(same_name(name, one) for one in known)]


async def _asked(db: Database, order: SweepOrder, serial: str, chosen: SweepPlan) -> dict[str, list[str]]:
    """Return the ids of the questions that wait for a person, by contact: of any run of this app on this phone.

    Only contacts for which it makes a difference are included: the quiet ones, and those that are left for a question.
    If there are none, nothing is read.
    """
    names = [*chosen.quiet, *(contact for contact, why in chosen.left if why is Left.ASKED)]
    if not names:
        return {}
    rows = [(_contact_of(row), row) for row in await Questions(db).find(state=OPEN, limit=MOST_QUESTIONS)]
    theirs = [(one, row) for one, row in rows if one and any(same_name(name, one) for name in names)]
    runs = await Runs(db).some(sorted({row.run_id for _, row in theirs}))
    here = {run.id for run in runs if run.serial == serial and _app_of(run) == order.app}
    asked: dict[str, list[str]] = {}
    for contact, row in theirs:
        if row.run_id in here:
            asked.setdefault(contact, []).append(row.id)
    return asked


def _contact_of(question: QuestionRow) -> str:
    """Return the contact that a question is about; "" if it is about none."""
    return str((question.payload.get("data") or {}).get("contact") or "")


def _app_of(run: RunRow) -> str:
    """Return the app in which a run answers somebody; "" if it does not."""
    with suppress(InputRejected):
        if (reply := reply_task(run.task)) is not None:
            return reply.profile.key
    return ""


def _questions(chosen: SweepPlan, asked: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return [name, question id] for everybody who is left because a question of theirs waits."""
    left = [contact for contact, why in chosen.left if why is Left.ASKED]
    return [[name, id_] for name in left for other, ids in asked.items() if same_name(name, other) for id_ in ids]


def _details(
    look: UnreadLook, chosen: SweepPlan, unnamed: Sequence[str], told_before: Sequence[SetAside], *, everybody: bool
) -> dict[str, object]:
    """Return, for people, who was left out and why, each only once.

    Groups and the like are included only if everybody is meant.
    """
    aside = [
        [one.name, one.why.value]
        for one in look.aside
        if (everybody or one.why is Aside.LOOK_ALIKE) and not any(one.told_by(before) for before in told_before)
    ]
    left = [[contact, why.value] for contact, why in chosen.left]
    return {
        "aside": aside,
        "left": [*left, *([contact, Left.UNNAMED.value] for contact in unnamed)],
        "quiet": list(chosen.quiet),
    }
