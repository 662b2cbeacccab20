"""The answer log in the chat: pages, single answers with their pictures and ratings, and unanswered questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent_core.apps.profile import name_of
from agent_core.texts import Listed
from bot.channels.chat.cards import ELSEWHERE, ENTRIES_A_PAGE, Button, Card, Line, cut, in_rows, turning
from bot.channels.chat.commands import rest_of, times_of
from bot.channels.chat.kb_cards import row
from bot.channels.chat.run_cards import THUMBS, rating_buttons, rating_lines, run_card, source_lines
from bot.channels.chat.texts import Texts, texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.actors import Role
from bot.desk.views import AnswersAsked, AnswersPage, AnswerView, UnansweredView

GROUPS = 10
ENTRY = "entry"  # marks the rating buttons of an answer's own card; the run's card has none

_RATINGS = {
    "bad": -1, "差评": -1, "差": -1, "不好": -1, "👎": -1,
    "good": 1, "好评": 1, "好": 1, "👍": 1,
}  # fmt: skip
_OPEN = {"open", "未完成", "待处理", "没答复", "未回复"}
_UNANSWERED = {"unanswered", "未答", "未答问题", "没答上", "答不上"}
_CONTACT = re.compile(r"(?:contact|联系人)[:：](.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AnswersCommand:
    """A request of ``/answers``. ``entry``: the number of one answer. ``groups``: the unanswered questions."""

    asked: AnswersAsked = field(default_factory=AnswersAsked)
    entry: str = ""
    groups: bool = False


def read_asking(rest: str) -> AnswersCommand:
    """Read ``[today|week|7d|2026-11-01] [bad|good|open|unanswered] [NAME OR WORDS]`` in any order, or ``#12``."""
    rest = rest.strip()
    if re.fullmatch(r"[#＃]\s*\d{1,15}", rest):
        return AnswersCommand(entry=rest[1:].strip())
    asked, groups, words = AnswersAsked(), False, []
    for word in rest.split():
        plain = word.lower()
        if times := times_of(plain):
            asked = replace(asked, since=times.since, until=times.until or asked.until)
        elif plain in _RATINGS:
            asked = replace(asked, rating=_RATINGS[plain])
        elif plain in _OPEN:
            asked = replace(asked, unanswered=True)
        elif plain in _UNANSWERED:
            groups = True
        else:
            words.append(word)
    said = " ".join(words)
    if named := _CONTACT.fullmatch(said):
        return AnswersCommand(replace(asked, contact=named[1].strip()), groups=groups)
    return AnswersCommand(replace(asked, words=said), groups=groups)


# Commands -------------------------------------------------------------------------------------------------------------


async def answers(turn: Turn) -> Said:
    """Handle ``/answers``: show one answer, the unanswered questions, or a page of the log."""
    asking = read_asking(turn.rest)
    if asking.entry:
        return await _open(turn, asking.entry)
    if asking.groups:
        groups = await turn.desk.answers.unanswered(turn.actor, asking.asked.since)
        return turn.say(_groups_card(turn.texts, groups, turn.actor.role))
    page = await turn.desk.answers.find(turn.actor, asking.asked, limit=ENTRIES_A_PAGE)
    return turn.say(_page_card(turn.texts, page, turn.rest, any_at_all=asking == AnswersCommand()))


async def _turn_page(turn: Turn, value: str) -> Said:
    """Show another page: ``b12:week bad`` is the page before answer 12, ``a12:…`` the one after it."""
    place, _, rest = value.partition(":")
    if rest == ELSEWHERE and not (rest := rest_of(turn.incoming.subject)):
        return Said(toast=turn.texts.get("answers.lost"), alert=True)
    before, after = (place[1:], "") if place.startswith("b") else ("", place[1:])
    page = await turn.desk.answers.find(
        turn.actor, read_asking(rest).asked, before=before, after=after, limit=ENTRIES_A_PAGE
    )
    return turn.change(_page_card(turn.texts, page, rest, any_at_all=False))


async def _open(turn: Turn, value: str) -> Said:
    return turn.say(await _entry_card(turn, await turn.desk.answers.get(turn.actor, value)))


async def _picture(turn: Turn, value: str) -> Said:
    """Show a picture: ``12:before`` or ``12:after``."""
    answer_id, _, which = value.partition(":")
    before, after = await turn.desk.answers.pictures(turn.actor, answer_id)
    picture = before if which == "before" else after
    if picture is None:
        return Said(toast=turn.texts.get("answers.no_picture"), alert=True)
    key = "answers.picture_before" if which == "before" else "answers.picture_after"
    return turn.say(Card(turn.texts.get(key, id=answer_id), (), picture))


async def _rate(turn: Turn, value: str) -> Said:
    """Rate an answer: ``12:1`` on the card of the run that sent it, ``12:-1:entry`` on its own card."""
    answer_id, _, rest = value.partition(":")
    rating, _, place = rest.partition(":")
    if rating not in {"1", "-1"}:
        return Said(toast=turn.texts.get("common.no_button"))
    view = await turn.desk.answers.rate(turn.actor, answer_id, int(rating), key=turn.incoming.key)
    thumb = THUMBS.get(view.rating, "")
    toast = turn.texts.get("answers.rated", thumb=thumb) if thumb else turn.texts.get("answers.unrated")
    changed = await _rated_card(turn, view, place)
    told = turn.say(await _improve_card(turn, view)).messages if view.rating < 0 else ()
    return Said((*changed, *told), toast=toast)


async def _rated_card(turn: Turn, view: AnswerView, place: str) -> tuple[Outgoing, ...]:
    """Return the card whose rating button was tapped, with the new rating."""
    if place == ENTRY:
        return turn.change(await _entry_card(turn, view)).messages
    run = await turn.desk.runs.get(view.run_id)
    if run is None or not run.status.final:
        return ()
    card = run_card(run, texts(run.lang), now=turn.now)  # in the run's language, whoever rates
    return (Outgoing(card, turn.chat, replaces=turn.incoming.reply_to),)


async def _how_to_add(turn: Turn, value: str) -> Said:
    view = await turn.desk.answers.get(turn.actor, value)
    if (entry := await turn.desk.kb.means(turn.actor, view.question)) is not None:
        lines = (Line(entry.question, turn.texts.number(entry.id), "quote"), Line(cut(entry.answer, 120), "", "quote"))
        shown = row(Button(f"kb:show:{entry.id}", turn.texts.get("answers.see_one")))
        return turn.say(
            Card(turn.texts.get("answers.has_entry" if entry.live else "answers.has_waiting"), lines, None, shown)
        )
    own = view.sent if view.provenance == "person" and view.state == "sent" else ""
    text = Line(_add_text(turn.texts, view.question, own), "", "code")
    return turn.say(Card(turn.texts.get("answers.add_title"), (text,)))


# Cards ----------------------------------------------------------------------------------------------------------------


def _page_card(words: Texts, page: AnswersPage, rest: str, *, any_at_all: bool) -> Card:
    if not page.answers:
        empty = words.get("answers.empty" if any_at_all else "answers.empty_filtered")
        return Card(empty, (Line(words.get("answers.usage")),), None, _turning(words, page, rest))
    lines = [Line(words.get("answers.total", total=page.total))]
    for answer in page.answers:
        lines += _in_short(answer, words)
    buttons = [Button(f"answer:{answer.id}", f"#{answer.id}") for answer in page.answers]
    return Card(words.get("answers.title"), tuple(lines), None, in_rows(buttons) + _turning(words, page, rest))


def _in_short(answer: AnswerView, words: Texts) -> list[Line]:
    state = words.get(f"answer_state.{answer.standing}")
    marks = " ".join(part for part in (state, THUMBS.get(answer.rating, "")) if part)
    head = f"{answer.asked_at:%m-%d %H:%M} · {answer.contact} · {marks}"
    said = cut(answer.question, 60) + (f"\n→ {cut(answer.sent, 80)}" if answer.sent else "")
    return [Line(head, f"#{answer.id}"), Line(said, "", "quote")]


def _turning(words: Texts, page: AnswersPage, rest: str) -> tuple[tuple[Button, ...], ...]:
    if not page.answers:
        return ()
    newer = page.answers[0].id if page.newer else None
    older = page.answers[-1].id if page.older else None
    return turning("answers", rest, words, newer=newer, older=older)


async def _entry_card(turn: Turn, answer: AnswerView) -> Card:
    words = turn.texts
    (phone,) = await turn.desk.phones.names([answer.serial])
    title = f"{words.get('answers.title')} #{answer.id}"
    lines = tuple(answer_lines(words, answer, phone))
    return Card(title, lines, None, _entry_buttons(words, answer, turn.actor.role))


def answer_lines(words: Texts, answer: AnswerView, phone: str) -> list[Line]:
    """Return all facts about an answer. ``phone``: the name of the phone."""
    who = " · ".join(part for part in (answer.contact, name_of(answer.app, words.lang), phone) if part)
    lines = [
        Line(f"{answer.asked_at:%Y-%m-%d %H:%M}", words.get("answers.asked")),
        Line(who, words.get("answers.contact")),
        Line(answer.question, words.get("card.customer", contact=answer.contact), "quote"),
    ]
    if answer.query and answer.query != answer.question:
        lines.append(Line(answer.query, words.get("answers.query")))
    if answer.sent:
        label = "card.sent" if answer.state == "sent" else "card.not_delivered"
        lines.append(Line(answer.sent, words.get(label), "quote"))
    lines.append(Line(words.get(f"answer_state.{answer.standing}"), words.get("answers.state")))
    if answer.question_id:
        lines.append(Line(words.get("answers.asked_how")))
    lines += source_lines(answer, words)
    lines += rating_lines((answer,), words)
    return lines + _record_lines(answer, words)


def _record_lines(answer: AnswerView, words: Texts) -> list[Line]:
    """Return the lines of the other records that the knowledge base found; the card already shows the one that was
    sent.
    """
    lines = []
    for number, record in enumerate(answer.records[:3], start=1):
        if record.text == answer.sent:
            continue
        if record.score is None:
            label = words.get("answers.record", number=number)
        else:
            label = words.get("answers.record_score", number=number, score=record.score)
        lines.append(Line(cut(record.text, 120), label))
    return lines


def _entry_buttons(words: Texts, answer: AnswerView, role: Role) -> tuple[tuple[Button, ...], ...]:
    rows = list(rating_buttons((answer,), place=ENTRY)) if answer.state in {"sent", "unknown"} else []
    shots = [("before", answer.before), ("after", answer.after)]
    row = tuple(Button(f"shot:{answer.id}:{name}", words.get(f"answers.{name}")) for name, there in shots if there)
    if row:
        rows.append(row)
    unknown = answer.state in {"skipped", "failed"} or (answer.provenance == "person" and not answer.record_id)
    if unknown and role.covers(Role.OPERATOR):
        rows.append((Button(f"kbhow:{answer.id}", words.get("answers.add_one"), "primary"),))
    return tuple(rows)


def _groups_card(words: Texts, groups: Sequence[UnansweredView], role: Role) -> Card:
    if not groups:
        return Card(words.get("answers.empty_unanswered"), (Line(words.get("answers.usage")),))
    lines: list[Line] = []
    buttons: list[Button] = []
    for number, group in enumerate(groups[:GROUPS], start=1):
        times = words.get("answers.asked_times", count=group.count, time=f"{group.newest:%m-%d %H:%M}")
        people = words.get("answers.asked_by", contacts=cut(Listed(group.contacts).joined(words.lang), 40))
        lines += [Line(f"{times} · {people}", f"#{number}"), Line(cut(group.example, 120), "", "quote")]
        if group.answer:
            lines.append(Line(cut(group.answer, 120), words.get("answers.answered_so")))
        if group.entry:
            known = words.get("answers.has_entry" if group.entry_live else "answers.has_waiting")
            lines.append(Line(cut(group.entry_question, 60), known))
            show = Button(f"kb:show:{group.entry}", words.get("answers.see_entry", number=number))
            buttons += [button for fitting in row(show) for button in fitting]
        elif role.covers(Role.OPERATOR):
            buttons.append(Button(f"kbhow:{group.answer_id}", words.get("answers.add", number=number)))
    if more := len(groups) - GROUPS:
        lines += [Line(words.get("answers.more_groups", count=more))] if more > 0 else []
    return Card(words.get("answers.unanswered_title"), tuple(lines), None, in_rows(buttons, 2))


async def _improve_card(turn: Turn, answer: AnswerView) -> Card:
    """Return a card with this person's options for a bad answer."""
    words, owner = turn.texts, turn.actor.role is Role.OWNER
    lines = []
    source, _, _ = answer.record_source.partition(":")
    if answer.record_id and source == "embedded" and owner:
        edit = words.get("answers.bad_edit_text", id=answer.record_id, answer=words.get("answers.add_blank"))
        lines += [Line(words.get("answers.bad_edit")), Line(edit, "", "code")]
    elif answer.record_id and source == "embedded":
        lines.append(Line(words.get("answers.bad_ask_owner", id=answer.record_id)))
    elif answer.record_id:
        where = answer.record_source or words.number(answer.record_id)
        lines.append(Line(words.get("answers.bad_source", source=where)))
    entry = await turn.desk.kb.means(turn.actor, answer.question)
    if entry is None:
        add = words.get("answers.bad_add" if owner else "answers.bad_add_waits")
        lines += [Line(add), Line(_add_text(words, answer.question), "", "code")]
    elif entry.id != answer.record_id:  # a second entry for the question cannot be added
        known = words.get("answers.has_entry" if entry.live else "answers.has_waiting")
        lines.append(Line(f"{words.number(entry.id)} {cut(entry.question, 60)}", known))
    return Card(words.get("answers.bad_title"), tuple(lines))


def _add_text(words: Texts, question: str, answer: str = "") -> str:
    return words.get(
        "answers.add_text", question=" ".join(question.split()), answer=answer or words.get("answers.add_blank")
    )


SUBJECT = Subject(
    commands={"answers": answers},
    buttons={"answers": _turn_page, "answer": _open, "shot": _picture, "rate": _rate, "kbhow": _how_to_add},
)
