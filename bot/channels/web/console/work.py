"""The pages about work: the overview, runs and their steps, and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bot.channels.chat.cards import Card
from bot.channels.chat.devices import phone_state
from bot.channels.chat.history import ending_of, origin_of
from bot.channels.chat.questions import choice_label, question_card, question_title
from bot.channels.chat.run_cards import describe_action, run_state, state_of
from bot.channels.chat.sweeps import card_of
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role, no_phone
from bot.desk.history_views import HistoryAsked
from bot.desk.views import PhoneView, QuestionView, RunStatus, RunView
from bot.tools.replay.words import no_steps

overview, questions, history = Pages("overview"), Pages("questions"), Pages("history")
PAGE = 20  # entries of a list


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question with its card. ``choices``: a button's value and words. ``pictured``: there is a picture."""

    view: QuestionView
    card: Card
    choices: tuple[tuple[str, str], ...] = ()
    pictured: bool = False


@dataclass(frozen=True, slots=True)
class ShownPhone:
    """A phone. ``picture``: the path of its newest picture, "" if there is none. ``run``: the id of its run, or ""."""

    view: PhoneView
    state: str
    picture: str
    run: str


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step in words. ``event``: the one with its picture, None if there is none."""

    index: int
    action: str
    thinking: str
    result: str
    event: int | None


@overview.page("", "overview.html")
async def show_overview(visit: Visit) -> Shown:
    status = await visit.desk.status(visit.actor)
    newest = {run.id: await _newest_picture(visit, run) for run in status.runs}
    return {
        "phones": [_phone(visit, phone, newest) for phone in status.phones],
        "runs": [(run, run_state(run, visit.words), _doing(visit, run)) for run in status.runs],
        "questions": [(view, question_title(view.question, visit.words)) for view in status.questions],
        "operates": visit.may(Role.OPERATOR),
    }


async def _newest_picture(visit: Visit, run: RunView) -> str:
    """Return the path of the newest picture of a run that is under way, "" if there is none."""
    if run.started_at is None:
        return ""
    event = await visit.desk.log.newest_picture(visit.actor, run.id)
    return f"/api/v1/events/{event}/picture" if event is not None else ""


def _phone(visit: Visit, phone: PhoneView, newest: Mapping[str, str]) -> ShownPhone:
    """Return a phone. ``newest``: the newest picture of each run; what else may have the phone is no run."""
    is_there = phone.state in {"free", "busy"}
    picture = newest.get(phone.run_id) or (f"/api/v1/devices/{quote(phone.serial, safe='')}/screen" if is_there else "")
    run = phone.run_id if phone.run_id in newest else ""
    return ShownPhone(phone, phone_state(phone, visit.words), picture, run)


def _doing(visit: Visit, run: RunView) -> str:
    return describe_action(visit.words, run.last_step) if run.last_step is not None else run.message


@overview.page("/phones/{serial}", "phone.html")
async def show_phone(visit: Visit) -> Shown:
    status, serial = await visit.desk.status(visit.actor), visit.request.match_info["serial"]
    phone = next((phone for phone in status.phones if phone.serial == serial), None)
    if phone is None:
        raise no_phone(serial)
    holder = visit.desk.take_over.holder(serial)
    return {
        "phone": phone,
        "name": phone.name or phone.serial,
        "state": phone_state(phone, visit.words),
        "run": next((run for run in status.runs if run.id == phone.run_id), None),
        "taken": bool(holder),
        "mine": holder == visit.actor.id,
        "operates": visit.may(Role.OPERATOR),
    }


# Runs -----------------------------------------------------------------------------------------------------------------


@history.page("/runs", "history.html")
async def list_runs(visit: Visit) -> Shown:
    asked = HistoryAsked(words=visit.query("words"), status=visit.query("status"))
    before = visit.cursor()
    page = await visit.desk.history.runs(visit.actor, asked, before=int(before) if before else None, limit=PAGE)
    words = visit.words
    return {
        "runs": [
            (
                run,
                words.get(state_of(run.status, held=run.held, left_to=run.left_to)),
                origin_of(run, words),
                ending_of(run, words),
            )
            for run in page.runs
        ],
        "total": page.total,
        "next": page.runs[-1].number if page.older and page.runs else "",
        "asked": asked,
        "statuses": [(status.value, words.get(f"card.{status.value}")) for status in RunStatus],
    }


@history.page("/runs/{run_id}", "run.html")
async def show_run(visit: Visit) -> Shown:
    replay = await visit.desk.history.replay(visit.actor, visit.request.match_info["run_id"])
    run, words = replay.run, visit.words
    steps = [
        ShownStep(
            step.index,
            describe_action(words, step),
            step.thinking.strip(),
            "" if step.unread or step.ok else step.result,  # otherwise it is said to the model
            replay.events.get(step.index),
        )
        for step in replay.steps
    ]
    asked = await visit.desk.questions.of_run(run.id)
    return {
        "number": replay.number,
        "run": run,
        "card": card_of(run, words, now=visit.now),
        "steps": steps[::-1],
        "gone": replay.gone,
        "no_steps": no_steps(run, words) if run.status.final else words.own("run.no_steps"),
        "parts_": [
            (part, words.get(state_of(part.status, held=part.held, left_to=part.left_to))) for part in replay.parts
        ],
        "questions": await _shown_all(visit, [view for view in asked if view.open or view.learnt is not None]),
        "operates": visit.may(Role.OPERATOR),
    }


# Questions ------------------------------------------------------------------------------------------------------------


@questions.page("/questions", "questions.html")
async def list_questions(visit: Visit) -> Shown:
    found = await visit.desk.questions.all_open(visit.actor)
    return {"questions": await _shown_all(visit, found), "operates": visit.may(Role.OPERATOR)}


@questions.page("/questions/{question_id}", "question.html")
async def show_question(visit: Visit) -> Shown:
    view = await visit.desk.questions.look(visit.actor, visit.request.match_info["question_id"])
    return {"question": (await _shown_all(visit, [view]))[0], "operates": visit.may(Role.OPERATOR)}


async def _shown_all(visit: Visit, views: Sequence[QuestionView]) -> list[ShownQuestion]:
    return [await _shown(visit, view) for view in views]


async def _shown(visit: Visit, view: QuestionView) -> ShownQuestion:
    words = visit.words
    hint = words.own("question.hint" if visit.may(Role.OPERATOR) else "question.hint_viewer")
    card = question_card(view, words, hint=hint, approves=visit.may(Role.OWNER))
    labels = [choice_label(view, number, words) for number in range(len(view.question.choices))]
    choices = tuple(zip((choice.value for choice in view.question.choices), labels, strict=True))
    pictured = await visit.desk.questions.picture(view.id) is not None
    return ShownQuestion(view, card, choices if view.open else (), pictured)
