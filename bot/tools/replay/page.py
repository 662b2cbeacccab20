"""Shows a run as a page: one file that needs nothing else, and lets nothing else in.

Words of people, screens and models are text in it, never markup; its policy allows only its own style and script.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Iterator
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError

from agent_core.actions.types import Action, DoubleTap, LongPress, Swipe, Tap
from agent_core.geometry import Point
from agent_core.perception.marks import OPEN, RADII
from agent_core.session import StepRecord, StepVerdict
from bot.app.escapes import escaped
from bot.channels.chat.run_cards import decided, describe_action, state_of
from bot.channels.chat.texts import Texts
from bot.desk.history_views import RecordedStep, RecordingView
from bot.desk.views import RunStatus
from bot.tools.replay.page_parts import SCRIPT, STYLE
from bot.tools.replay.timings import Timings, timings_of
from bot.tools.replay.words import (
    action_of,
    facts_of,
    is_for_model,
    outcome_of,
    part_of,
    result_of,
    role_word,
    ruled,
    text_of_message,
)

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)
HEADS = ("phase", "count", "mean", "least", "most", "deviation")
MOODS = {RunStatus.SUCCEEDED: "good", RunStatus.FAILED: "bad", RunStatus.STOPPED: "turn"}
_MARK, _HALO = "#ff2d55", "#ffffff"


def page_of(view: RecordingView, words: Texts) -> str:
    """Return the whole page, in the language of ``words``."""
    title = f"#{view.number} · {view.run.task}"
    parts = (
        "<!doctype html>",
        f'<html lang="{"zh-CN" if words.lang == "zh" else "en"}"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title><style>{STYLE}</style><script>{SCRIPT}</script></head><body>",
        _head(view, words),
        f'<main{"" if view.steps else " class=alone"}>{_bar(view, words) if view.steps else ""}<div id="shown">',
        *(_step(step, words) for step in view.steps),
        _end(view, words),
        "</div></main></body></html>",
    )
    return "\n".join(parts)


def _policy() -> str:
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_digest(STYLE)}; script-src {_digest(SCRIPT)}"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    return html.escape(escaped(text))


# The head, and the navigation through the steps -----------------------------------------------------------------------


def _head(view: RecordingView, words: Texts) -> str:
    """Return the head: the page's title, the task, how it ended, and facts; beside them, how to navigate."""
    state, *facts = facts_of(view, words)
    said = outcome_of(view.run, words)[:1]
    how = (
        f'<p id="how"><span class="keys">{_text(words.get("replay.how"))}</span>'
        f'<span class="hand">{_text(words.get("replay.how_by_hand"))}</span></p>'
    )
    return (
        f"<header>{how if view.steps else ''}"
        f'<p class="dim">{_text(words.get("replay.title", number=view.number))}</p><h1>{_text(view.run.task)}</h1>'
        f'<p class="outcome {MOODS.get(view.run.status, "")}">{_text(" · ".join((state, *said)))}</p>'
        f'<p class="dim">{_text(" · ".join(facts))}</p></header>'
    )


def _bar(view: RecordingView, words: Texts) -> str:
    """Return the two buttons and the list of the steps, which begins unfolded and stays so without the script."""
    return (
        f'<div id="bar"><button type="button" id="before">‹ {_text(words.get("replay.before"))}</button>'
        f"<details open><summary>{_text(words.get('replay.all_steps'))}"
        f' <span id="place" aria-live="polite"></span></summary><nav>{"".join(_links(view, words))}</nav></details>'
        f'<button type="button" id="after">{_text(words.get("replay.after"))} ›</button></div>'
    )


def _links(view: RecordingView, words: Texts) -> Iterator[str]:
    last = view.steps[-1].record.index
    for step in view.steps:
        record = step.record
        mood = "turn" if record.asks or (record.ok and record.verdicts) else "" if record.ok else "bad"
        said = " · ".join((*(decided(verdict, words) for verdict in record.verdicts[-1:]), _did(record, words)))
        place = f'href="#s{record.index}" data-place="{record.index} / {last}"'
        yield f'<a {place} class="{mood}">{record.index} {_text(said)}</a>'
    state = _text(words.get(state_of(view.run.status, left_to=view.run.left_to)))
    yield f'<a href="#end" data-place="{state}">{state}</a>'


def _did(record: StepRecord, words: Texts) -> str:
    return describe_action(words, record) or record.result or "—"


# Steps ----------------------------------------------------------------------------------------------------------------


def _step(step: RecordedStep, words: Texts) -> str:
    record = step.record
    mood = "" if record.ok else ' class="bad"'
    head = " · ".join((words.get("replay.step_head", step=record.index), _did(record, words)))
    fields = _field(words.get("card.thinking"), record.thinking)
    proposed, done = action_of(record.asked, words), action_of(record.action, words)
    if record.asked is not None and proposed != done:
        fields += _field(words.get("replay.proposed"), proposed)
        fields += _field(words.get("replay.done"), done or words.get("replay.nothing_done"), "" if record.ok else "bad")
    fields += [_verdict(verdict, words) for verdict in record.verdicts]
    label = words.get("replay.told_model" if is_for_model(record) else "card.result")
    fields += _field(label, result_of(record), "" if record.ok else "bad")
    fields += [_timings(record, words)]
    fields += _details(words.get("replay.reply"), _pre(record.reply)) if record.reply else []
    if step.asked is not None:
        fields += _details(words.get("replay.asked_of", model=step.asked.model), _messages(step, words))
    return (
        f'<section id="s{record.index}"><h2{mood}>{_text(head)}</h2>'
        f"{_figure(step, words)}<div>{''.join(fields)}</div></section>"
    )


def _field(label: str, text: str, mood: str = "") -> list[str]:
    if not text.strip():
        return []
    head = f"<h3>{_text(label)}</h3>" if label else ""
    return [f'{head}<p class="{mood}">{_text(text)}</p>']


def _verdict(verdict: StepVerdict, words: Texts) -> str:
    return f'<h3>{_text(ruled(verdict, words))}</h3><p class="turn">{_text(verdict.message)}</p>'


def _pre(text: str) -> str:
    return f"<pre>{_text(text)}</pre>"


def _details(label: str, inside: str) -> list[str]:
    return [f"<details><summary>{_text(label)}</summary>{inside}</details>"]


def _messages(step: RecordedStep, words: Texts) -> str:
    return "".join(
        f"<h3>{_text(role_word(message, words))}</h3>{_pre(text_of_message(message, words))}"
        for message in step.messages
    )


def _timings(record: StepRecord, words: Texts) -> str:
    rows = "".join(
        f"<tr><td>{_text(words.find(f'timings.{name}', name))}</td><td>{seconds:.3f}</td></tr>"
        for name, seconds in record.timings.items()
    )
    tokens = ""
    if record.tokens_in or record.tokens_out:
        said = words.get("replay.tokens", tokens_in=record.tokens_in, tokens_out=record.tokens_out)
        tokens = f"<tr><td colspan=2>{_text(said)}</td></tr>"
    head = _text(words.get("replay.seconds"))
    return f"<details><summary>{head}</summary><table>{rows}{tokens}</table></details>" if rows else ""


# The picture ----------------------------------------------------------------------------------------------------------


def _figure(step: RecordedStep, words: Texts) -> str:
    if step.picture is not None and step.asked is not None:
        width, height = step.asked.size
        image = f'<image href="{_url(step.picture)}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        drawn = f'<svg {size} role="img">{image}{_marks(step, (width, height))}</svg>'
        note = "replay.picture_raw" if step.asked.raw else "replay.picture_covered" if step.asked.covered else ""
        return f"<figure>{drawn}{_caption(words.get(note) if note else '')}</figure>"
    if step.shown is not None:
        alt = _text(words.get("replay.picture_shown"))
        return f'<figure><img src="{_url(step.shown)}" alt=""><figcaption>{alt}</figcaption></figure>'
    return f'<figure><div class="none">{_text(words.get("replay.no_picture"))}</div></figure>'


def _caption(text: str) -> str:
    return f"<figcaption>{_text(text)}</figcaption>" if text else ""


def _url(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def _marks(step: RecordedStep, size: tuple[int, int]) -> str:
    """Draw the action, in the colour of people's pictures; a proposal that was not done is dashed."""
    done, proposed = _read(step.record.action), _read(step.record.asked)
    drawn = _mark(done, size, broken=False) if done is not None else ""
    if proposed is not None and proposed != done:
        drawn += _mark(proposed, size, broken=True)
    return drawn


def _mark(action: Action, size: tuple[int, int], *, broken: bool) -> str:
    unit = max(3, min(size) // 135)
    if isinstance(action, Swipe) and action.start != action.end:
        return _arrow(Point.from_relative(action.start, size), Point.from_relative(action.end, size), unit, broken)
    if not isinstance(action, Tap | DoubleTap | LongPress | Swipe):
        return ""
    point = Point.from_relative(action.start if isinstance(action, Swipe) else action.element, size)
    rings = RADII if isinstance(action, LongPress | Swipe) else RADII[:1]
    return "".join(_shape(f'<path d="{_ring(point, unit * radius)}"', unit, broken) for radius in rings)


def _ring(point: Point, radius: int) -> str:
    """Return a ring that is open at both sides, as ``agent_core.perception.marks`` draws it."""
    across, up = radius * math.cos(math.radians(OPEN)), radius * math.sin(math.radians(OPEN))
    return " ".join(
        f"M {point.x - side * across:.0f} {point.y - side * up:.0f} "
        f"A {radius} {radius} 0 0 1 {point.x + side * across:.0f} {point.y - side * up:.0f}"
        for side in (1, -1)
    )


def _arrow(start: Point, end: Point, unit: int, broken: bool) -> str:
    angle = math.atan2(end.y - start.y, end.x - start.x)
    turns = (angle + math.pi * 0.85, angle - math.pi * 0.85)
    head = " ".join(
        f"L {end.x + unit * 6 * math.cos(turn):.0f} {end.y + unit * 6 * math.sin(turn):.0f} M {end.x} {end.y}"
        for turn in turns
    )
    return _shape(f'<path d="M {start.x} {start.y} L {end.x} {end.y} {head}"', unit, broken)


def _shape(begun: str, unit: int, broken: bool) -> str:
    dashes = f' stroke-dasharray="{unit * 3} {unit * 2}"' if broken else ""
    return (
        f'{begun} fill="none" stroke="{_HALO}" stroke-width="{unit * 2}"{dashes}/>'
        f'{begun} fill="none" stroke="{_MARK}" stroke-width="{unit}"{dashes}/>'
    )


def _read(data: object) -> Action | None:
    try:
        return _ACTION.validate_python(data) if data else None
    except ValidationError:  # another release's
        return None


# The end --------------------------------------------------------------------------------------------------------------


def _end(view: RecordingView, words: Texts) -> str:
    session = view.session
    fields = [line for said in outcome_of(view.run, words) for line in _field("", said)]
    for reply in session.replies:
        fields += _field(words.get("card.customer", contact=reply.contact), reply.question)
        fields += _field(words.get("card.sent"), reply.text, "good" if reply.delivered else "bad")
    for question in session.questions:
        fields += _field(words.get("replay.question"), question.text)
    fields += [_parts(view, words), _table(timings_of([[step.record for step in view.steps]]), words)]
    state = _text(words.get(state_of(view.run.status, left_to=view.run.left_to)))
    return f'<section id="end"><h2>{state}</h2><div>{"".join(fields)}</div></section>'


def _parts(view: RecordingView, words: Texts) -> str:
    """List the runs of a plan or a sweep. Each has a separate page somewhere else, so its command is given."""
    if not view.parts:
        return ""
    rows = [(part.number, *part_of(part, words)) for part in view.parts]
    told = "".join(f"<li><b>#{number}</b> {_text(head)}<p>{_text(said)}</p></li>" for number, head, said in rows)
    how = words.get("replay.part_how", number=view.parts[0].number)
    return f'<h3>{_text(words.get("replay.parts"))}</h3><ul>{told}</ul><p class="dim">{_text(how)}</p>'


def _table(timings: Timings, words: Texts) -> str:
    heads = [words.get(f"timings.head_{name}") for name in HEADS]
    rows = "".join(
        f"<tr><td>{_text(words.find(f'timings.{phase.name}', phase.name))}</td><td>{phase.count}</td>"
        f"<td>{phase.mean:.3f}</td><td>{phase.least:.3f}</td><td>{phase.most:.3f}</td><td>{phase.deviation:.3f}</td></tr>"
        for phase in timings.phases
    )
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    return f"<h3>{_text(words.get('replay.seconds'))}</h3><table><tr>{head}</tr>{rows}</table>" if rows else ""
