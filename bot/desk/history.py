"""Past runs: pages of them, a single one, its pictures, and the records of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from agent_core.loop.trajectory import Message, ModelRequest, whole_messages
from agent_core.session import Question, Session, StepRecord
from bot.desk.actors import Actor, BadRequest, NotFound, Role, not_one_of
from bot.desk.answers import moment
from bot.desk.context import DeskContext, DeskService, sees
from bot.desk.history_views import (
    FrameView,
    HistoryAsked,
    HistoryPage,
    MediaView,
    PastRun,
    RecordedStep,
    RecordingView,
    ReplayView,
    spread,
)
from bot.desk.keys import program_names
from bot.desk.phonebook import PhoneBook
from bot.desk.run_parts import left_now, sweep_view
from bot.desk.runs import DeskRuns, status_of
from bot.desk.views import RunStatus, RunView
from scheduler.sweeps.order import SWEEP_KIND
from storage.engine import Database
from storage.events import EventRow, Events
from storage.history import History, HistoryFilter, NumberedRun
from storage.ledger import StoredLedger
from storage.model_calls import Trajectories, TrajectoryRow
from storage.runs import FAILED, PLAN, PLAN_PART, STOPPED, RunRow, Runs

PICTURED = ("step", "question", "answer")
PLANNED = "planned"  # an answer's first event: its picture is that of the step before


class DeskHistory(DeskService):
    """The service for past runs. A run is named by its number or its id; raises NotFound if there is none."""

    def __init__(self, context: DeskContext, runs: DeskRuns) -> None:
        super().__init__(context)
        self._runs = runs

    async def runs(
        self, actor: Actor, asked: HistoryAsked, *, before: int | None = None, after: int | None = None, limit: int = 10
    ) -> HistoryPage:
        """Return a page of runs, the newest first.

        before, after: the number of a run, to get the page of older or newer ones.
        Raises BadRequest if a time or a status cannot be read.
        """
        await self._allow(actor, Role.VIEWER, "history")
        async with self._db.one_view():
            log = History(self._db)
            book = await self._book()
            wanted = self._filter(actor, asked, book.serial(asked.words))
            found = await log.find(wanted, before=before, after=after, limit=limit + 1)
            more = len(found) > limit
            found = found[1:] if more and after is not None else found[:limit]
            return HistoryPage(
                await self._listed(found, book),
                await log.count(wanted),
                older=more if after is None else True,
                newer=more if after is not None else before is not None,
            )

    async def run(self, actor: Actor, name: str) -> RunView:
        """Return one run."""
        return await self._runs.existing((await self._asked(actor, "history open", name)).id)

    async def replay(self, actor: Actor, name: str = "") -> ReplayView:
        """Return a run to look at again; without a name the newest one."""
        row = await self._asked(actor, "replay", name)
        steps = Session.model_validate_json(row.session).steps if row.session else []
        pictured = [event for event in await self._pictured(row.id) if event.picture_id is not None]
        number = await History(self._db).number_of(row.id)
        gone = not pictured and bool(steps)
        parts = await self._parts(actor, row)
        shown = {event.data["index"]: event.id for event in pictured if event.kind == "step"}
        return ReplayView(number, await self._runs.existing(row.id), tuple(steps), len(pictured), gone, parts, shown)

    async def recording(self, actor: Actor, name: str) -> RecordingView:
        """Return all stored records of a run, for an owner. Raises BadRequest if there are none left."""
        await self._allow(actor, Role.OWNER, "recording")
        row = await self._asked(actor, "recording", name)
        session = Session.model_validate_json(row.session) if row.session else None
        if session is None or not session.steps:
            raise BadRequest(
                f"Nothing is left of the steps of the run {name}.",
                advice="It had none, or they were kept for a year.",
                key="no_steps",
                name=name,
            )
        shown = {
            int(event.data.get("index") or 0): event.picture_id
            for event in await self._pictured(row.id)
            if event.kind == "step" and event.picture_id is not None
        }
        steps = await recorded_steps(self._db, session, shown)
        number = await History(self._db).number_of(row.id)
        return RecordingView(number, await self._runs.existing(row.id), session, steps)

    async def film(self, run_id: str, *, most: int) -> MediaView:
        """Return at most ``most`` pictures of a run, spread over it. Checks no rights: ``replay`` has checked them."""
        row = await Runs(self._db).get(run_id)
        if row is None:
            raise NotFound(f"There is no run {run_id}.", advice="See /history.", key="no_run", name=run_id)
        pictured = await self._pictured(run_id)
        shown = [event for event in pictured if event.picture_id is not None]
        if len(shown) > most:  # the steps tell the story, and the last picture shows the result
            shown = [event for event in shown[:-1] if event.kind == "step"] + shown[-1:]
        shown = [shown[place] for place in spread(len(shown), most)]
        frames = [frame for event in shown if (frame := await self._frame(event)) is not None]
        steps = Session.model_validate_json(row.session).steps if row.session else []
        seen = {frame.step.index for frame in frames if frame.step is not None}
        kept = {event.data.get("index") for event in pictured if event.picture_id is not None and event.kind == "step"}
        return MediaView(
            await History(self._db).number_of(run_id),
            await self._runs.existing(row.id),
            tuple(frames),
            left_out=tuple(step.index for step in steps if step.index in kept - seen),
            gone=tuple(step.index for step in steps if step.index not in kept | seen),
        )

    # Parts ------------------------------------------------------------------------------------------------------------

    async def _asked(self, actor: Actor, command: str, name: str) -> RunRow:
        """Return the run that is meant. Raises AccessDenied if it is not this person's to look at."""
        name = name.strip().lstrip("#＃").strip()
        if name:
            row = await self._runs.row_named(name)
        else:
            newest = await History(self._db).find(HistoryFilter(serials=actor.phones), limit=1)
            row = await Runs(self._db).get(newest[0].row.id) if newest else None
        await self._allow(actor, Role.VIEWER, command, phone=row.serial if row else None, run=row.id if row else name)
        if row is None:
            said = f"There is no run {name}." if name else "There are no runs yet."
            raise NotFound(said, advice="See /history for the runs.", key="no_run" if name else "no_runs", name=name)
        return row

    async def _parts(self, actor: Actor, row: RunRow) -> tuple[PastRun, ...]:
        """Return the runs that belong to this one, as far as the person may see them."""
        its = [part for part in await Runs(self._db).parts_of(row.id) if sees(actor, part.serial)]
        if not its:
            return ()
        numbered = [NumberedRun(await History(self._db).number_of(part.id), part) for part in its]
        return await self._listed(numbered, await self._book())

    async def _pictured(self, run_id: str) -> list[EventRow]:
        """Return the run's events that may have a picture, in their order, without duplicates."""
        found: list[EventRow] = []
        position = 0
        while rows := await Events(self._db).after(position, run_id=run_id):
            position = rows[-1].id
            found += [row for row in rows if row.kind in PICTURED and row.data.get("state") != PLANNED]
        return found

    async def _frame(self, event: EventRow) -> FrameView | None:
        picture = None if event.picture_id is None else await Events(self._db).picture(event.picture_id)
        if picture is None:
            return None
        try:
            if event.kind == "step":
                return FrameView(picture, step=StepRecord.model_validate(event.data))
            if event.kind == "question":
                return FrameView(picture, question=Question.model_validate(event.data))
        except ValidationError:  # written by another release: the picture by itself is worth showing
            return FrameView(picture)
        data = event.data
        said = str(data.get("sent") or "")
        return FrameView(picture, state=str(data.get("state") or ""), contact=str(data.get("contact") or ""), text=said)

    async def _listed(self, found: Sequence[NumberedRun], book: PhoneBook) -> tuple[PastRun, ...]:
        sent = await History(self._db).sent_by([run.row.id for run in found])
        asking = await History(self._db).asking([run.row.id for run in found if not run.row.final])
        left = await History(self._db).sessions_left_elsewhere([run.row.id for run in found])
        left_to = await left_now(self._db, {one: Session.model_validate_json(kept) for one, kept in left.items()})
        stopped = [run.row.id for run in found if run.row.status == STOPPED]
        unanswered = await StoredLedger(self._db).left_open(stopped)
        parts = {run.row.parent_id for run in found if run.row.options.get("kind") == PLAN_PART}
        plans = {plan_id: await History(self._db).number_of(plan_id) for plan_id in parts}
        swept = [run.row.id for run in found if run.row.parent_id]
        schedules = {run.row.id: run.row.schedule_id for run in found if run.row.schedule_id is not None}
        schedules |= await History(self._db).schedules_of(swept) if swept else {}
        names = await self._names()
        if any(":" in run.row.requested_by for run in found):
            names |= await program_names(self._db)
        return tuple(
            [
                PastRun(
                    number=run.number,
                    id=run.row.id,
                    task=run.row.task,
                    status=status_of(run.row, asks=run.row.id in asking),
                    phone=book.name(run.row.serial),
                    by=names.get(run.row.requested_by, run.row.requested_by),
                    at=run.row.created_at.astimezone(self._zone),
                    seconds=_seconds(run.row),
                    schedule_id=str(schedules.get(run.row.id, "")),
                    message=run.row.message,
                    sent=tuple(dict.fromkeys((text.contact, text.text) for text in sent.get(run.row.id, ()))),
                    held=run.row.hold and not run.row.final,
                    unanswered=unanswered.get(run.row.id, ""),
                    left_to=left_to.get(run.row.id, ""),
                    sweep=await sweep_view(self._db, run.row) if run.row.options.get("kind") == SWEEP_KIND else None,
                    plan=plans.get(run.row.parent_id, 0) if run.row.options.get("kind") == PLAN_PART else 0,
                    cut_off=run.row.options.get("kind") == PLAN and run.row.status == FAILED and not run.row.message,
                )
                for run in found
            ]
        )

    def _filter(self, actor: Actor, asked: HistoryAsked, phone: str) -> HistoryFilter:
        if asked.status and asked.status not in set(RunStatus):
            raise not_one_of(f"This is no outcome: {asked.status}.", asked.status, RunStatus)
        now = self._db.now()
        return HistoryFilter(
            words=asked.words,
            phone=phone,
            contact=asked.contact,
            statuses=(asked.status,) if asked.status else (),
            since=moment(asked.since, now, self._zone) if asked.since else None,
            until=moment(asked.until, now, self._zone, end=True) if asked.until else None,
            serials=actor.phones,
        )


def _seconds(row: RunRow) -> float | None:
    if row.started_at is None or row.ended_at is None:
        return None
    return (row.ended_at - row.started_at).total_seconds()


async def recorded_steps(db: Database, session: Session, events: Mapping[int, int]) -> tuple[RecordedStep, ...]:
    """Return the steps in their order. ``events``: by step, the id of the picture that people were shown of it."""
    rows = Trajectories(db)
    asked = _requests(await rows.of(session.run_id))
    found = []
    for step in session.steps:
        row, request, messages = asked.get(step.index, (None, None, []))
        # This step was decided without the model; the request is of the same step in an attempt that died.
        if not step.reply and not step.model:
            row, request, messages = None, None, []
        picture = await rows.picture(session.run_id, request.picture) if request and request.picture else None
        shown = None
        if picture is None and step.index in events:
            shown = await Events(db).picture(events[step.index])
        found.append(
            RecordedStep(
                record=step,
                asked=request,
                messages=tuple(messages),
                picture=picture,
                shown=shown,
                at=row.created_at if row else None,
                stored=row.stored if row else 0,
            )
        )
    return tuple(found)


def _requests(rows: list[TrajectoryRow]) -> dict[int, tuple[TrajectoryRow, ModelRequest, list[Message]]]:
    """Return the requests by step. Leaves out a request that this release cannot read, and all that follow it."""
    read: list[tuple[TrajectoryRow, ModelRequest]] = []
    for row in rows:
        try:
            request = ModelRequest.model_validate_json(row.data)
        except ValidationError:
            break
        if read or not request.kept:  # otherwise it builds on a row that is gone
            read.append((row, request))
    whole = whole_messages([request for _, request in read])
    return {row.step: (row, request, messages) for (row, request), messages in zip(read, whole, strict=True)}
