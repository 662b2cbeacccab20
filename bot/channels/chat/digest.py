"""Digests of a day, a week or a month in the chat, asked for or sent by themselves; and alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from agent_core.model.usage import money
from agent_core.texts import Listed
from bot.channels.chat import answers
from bot.channels.chat.cards import Button, Card, Line, cut, took_words
from bot.channels.chat.chart import Column, draw_chart
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Role
from bot.desk.digest_views import AlertView, DigestSetting, DigestView, ModelShare, Often, Period

ASKED: tuple[Period, ...] = ("today", "yesterday", "week", "month")
MOST_LETTERS = 40  # of a question; a picture's caption has room for 1024 in all
MOST_MODELS = 3  # that are named
MOST_NAMED = 24  # letters of a model's name
MOST_WHY = 200
HOURS_APART, MOST_LABELS = 4, 8

_PERIODS: dict[str, Period] = {
    "today": "today", "今天": "today", "今日": "today",
    "yesterday": "yesterday", "昨天": "yesterday", "昨日": "yesterday",
    "week": "week", "一周": "week", "本周": "week", "这周": "week", "近一周": "week", "7天": "week",
    "month": "month", "一个月": "month", "本月": "month", "近一个月": "month", "30天": "month",
}  # fmt: skip
_SWITCHES = {"on": True, "开": True, "开启": True, "打开": True, "off": False, "关": False, "关闭": False}
_KINDS = {"daily": "daily", "每天": "daily", "每日": "daily", "日": "daily", "day": "daily",
          "weekly": "weekly", "每周": "weekly", "周": "weekly"}  # fmt: skip


# Commands and buttons -------------------------------------------------------------------------------------------------


async def digest(turn: Turn) -> Said:
    """Handle ``/digest [today|yesterday|week|month]`` and ``/digest on|off [daily|weekly]``."""
    words = turn.rest.lower().split()
    if words and words[0] in _SWITCHES:
        kinds = [_KINDS.get(word, "") for word in words[1:]]
        if "" in kinds or len(kinds) > 1:
            return turn.tell(turn.texts.get("digest.usage"))
        return turn.say(
            setting_card(turn.texts, await _switch(turn, kinds[0] if kinds else "", on=_SWITCHES[words[0]]))
        )
    period = _PERIODS.get(words[0]) if words else "today"
    if period is None or len(words) > 1:
        return turn.tell(turn.texts.get("digest.usage"))
    return turn.say(await _asked(turn, period))


async def _switch(turn: Turn, kind: str, *, on: bool) -> DigestSetting:
    """Turn digests on or off in this chat. ``kind``: "" for both."""
    return await turn.desk.digest.switch(
        turn.actor,
        turn.chat,
        daily=on if kind in ("", "daily") else None,
        weekly=on if kind in ("", "weekly") else None,
    )


async def _asked(turn: Turn, period: Period) -> Card:
    view = await turn.desk.digest.look(turn.actor, period)
    periods = tuple(Button(f"digest:{name}", turn.texts.get(f"digest.period_{name}")) for name in ASKED)
    card = await digest_card(view, turn.texts)
    return replace(card, buttons=(*card.buttons, periods))


async def _tapped(turn: Turn, value: str) -> Said:
    """Handle a button: a period, ``left:<days>`` for the questions without an answer, or ``set:daily:on``."""
    name, _, more = value.partition(":")
    if name == "left" and more.isdecimal():
        return await answers.answers(replace(turn, rest=f"unanswered {more}d"))
    if name == "set":
        kind, _, on = more.partition(":")
        now = await _switch(turn, kind, on=on == "on")
        return turn.change(setting_card(turn.texts, now), toast=turn.texts.get("digest.switched"))
    if name not in ASKED:
        return Said(toast=turn.texts.get("common.no_button"))
    period: Period = _PERIODS[name]
    return turn.change(await _asked(turn, period))


# Subscriptions --------------------------------------------------------------------------------------------------------


def setting_lines(words: Texts, setting: DigestSetting) -> tuple[Line, ...]:
    """Return which digests a chat gets, and when."""
    kinds = (("daily", setting.daily, setting.daily_at), ("weekly", setting.weekly, setting.weekly_at))
    return tuple(Line(_when(words, kind, at) if on else words.get("digest.off"), words.get(f"digest.kind_{kind}"))
                 for kind, on, at in kinds)  # fmt: skip


def _when(words: Texts, kind: str, at: str) -> str:
    """Return ``mon 09:00`` in the person's language, or that the settings have turned the digest off."""
    if not at:
        return words.get("digest.off_for_all")
    day, _, clock = at.rpartition(" ")
    return f"{words.get('digest.day_' + day[:3].lower())} {clock}" if kind == "weekly" else at


def setting_buttons(words: Texts, setting: DigestSetting) -> tuple[Button, ...]:
    """Return the buttons that turn each digest on or off."""
    rows = []
    for kind, on in (("daily", setting.daily), ("weekly", setting.weekly)):
        name = words.get(f"digest.kind_{kind}")
        label = words.get("digest.turn_off" if on else "digest.turn_on", name=name)
        rows.append(Button(f"digest:set:{kind}:{'off' if on else 'on'}", label))
    return tuple(rows)


def setting_card(words: Texts, setting: DigestSetting) -> Card:
    """Return a card of which digests the chat gets."""
    return Card(words.get("digest.setting"), setting_lines(words, setting), None, (setting_buttons(words, setting),))


async def setting_row(turn: Turn) -> tuple[tuple[Line, ...], tuple[tuple[Button, ...], ...]]:
    """Return the lines for ``/settings``: which digests the chat gets, and the buttons if the person may change it."""
    setting = await turn.desk.digest.setting(turn.actor, turn.chat)
    may = turn.actor.role.covers(Role.OPERATOR)
    return setting_lines(turn.texts, setting), (setting_buttons(turn.texts, setting),) if may else ()


# Cards ----------------------------------------------------------------------------------------------------------------


async def digest_card(view: DigestView, words: Texts) -> Card:
    """Return the card of the figures, with a chart as its picture."""
    columns = [
        Column(label, (bar.alone, bar.by_person, bar.left)) for bar, label in zip(view.bars, _labels(view), strict=True)
    ]
    legend = (
        f"{words.get('digest.alone')} {view.alone}",
        f"{words.get('digest.by_person')} {view.by_person}",
        f"{words.get('digest.left')} {view.left}",
    )
    span = _span(view)
    title = words.get("digest.chart_hours" if view.unit == "hour" else "digest.chart_days", span=span)
    nothing = words.get("digest.nothing")
    picture = await asyncio.to_thread(draw_chart, title, legend, columns, nothing=nothing)
    return Card(
        words.get(f"digest.title_{view.period}", span=span), tuple(_lines(view, words)), picture, _buttons(view, words)
    )


def _span(view: DigestView) -> str:
    """Return the period as ``11-20`` or ``11-14 – 11-20``, with the times if it does not begin at midnight."""
    if (view.since.hour, view.since.minute) != (0, 0):
        return f"{view.since:%m-%d %H:%M} – {view.until:%m-%d %H:%M}"
    last = view.until - timedelta(seconds=1)
    return f"{last:%m-%d}" if last.date() == view.since.date() else f"{view.since:%m-%d} – {last:%m-%d}"


def _lines(view: DigestView, words: Texts) -> list[Line]:
    if view.empty:
        return [Line(words.get("digest.nothing"))]
    share = round(100 * view.answered / view.asked) if view.asked else 0
    lines = [Line(words.get("digest.asked_line", asked=view.asked, answered=view.answered, share=share))]
    lines.append(Line(words.get("digest.how_line", alone=view.alone, person=view.by_person)))
    missed = [
        words.get(f"digest.{name}", count=count)
        for name in ("skipped", "failed", "unknown", "under_way")
        if (count := int(getattr(view, name)))
    ]
    if missed:
        lines.append(Line(" · ".join(missed), words.get("digest.left")))
    if view.put_to_person:
        lines.append(Line(words.get("digest.times", count=view.put_to_person), words.get("digest.put_to_person")))
    if view.median_seconds is not None:
        lines.append(Line(took_words(view.median_seconds, words), words.get("digest.median")))
    lines += _model_lines(view, words)
    if view.sweeps:
        values = {"sweeps": view.sweeps, "contacts": view.swept_contacts, "idle": view.idle_sweeps}
        lines.append(Line(words.get("digest.swept", **values), words.get("digest.sweeps")))
    if view.not_found:
        lines.append(Line(Listed(view.not_found).joined(words.lang), words.get("digest.not_found")))
    lines += _often_lines(view.often, words.get("digest.often"))
    return lines + _often_lines(view.unanswered, words.get("digest.unanswered"))


def _model_lines(view: DigestView, words: Texts) -> list[Line]:
    if not view.calls:
        return []
    used = words.get("digest.calls", calls=f"{view.calls:,}")
    if view.tokens_in or view.tokens_out:
        used += " · " + words.get("digest.tokens", tokens_in=f"{view.tokens_in:,}", tokens_out=f"{view.tokens_out:,}")
    lines = [Line(used, words.get("digest.model"))]
    if view.cost is not None:
        lines.append(Line(f"≈ {money(view.cost)} {view.currency}".rstrip(), words.get("digest.cost")))
    if len(view.models) > 1:
        said = "\n".join(_share(share, view.currency, words) for share in view.models[:MOST_MODELS])
        lines.append(Line(said, words.get("digest.by_model"), "quote"))
    if view.kept_since is not None:
        lines.append(Line(words.get("digest.kept_since", day=f"{view.kept_since:%m-%d}")))
    return lines


def _share(share: ModelShare, currency: str, words: Texts) -> str:
    calls = share.name[:MOST_NAMED] + words.get("common.colon") + words.get("digest.calls", calls=f"{share.calls:,}")
    return calls if share.cost is None else f"{calls} ≈ {money(share.cost)} {currency}".rstrip()


def _often_lines(often: Sequence[Often], label: str) -> list[Line]:
    if not often:
        return []
    said = "\n".join(f"{entry.count}× {cut(entry.example, MOST_LETTERS)}" for entry in often)
    return [Line(said, label, "quote")]


def _buttons(view: DigestView, words: Texts) -> tuple[tuple[Button, ...], ...]:
    if not view.left:
        return ()
    # ``30d`` counts back from the moment of the tap, so a day is added.
    days = max(1, (view.until - view.since).days) + 1
    return ((Button(f"digest:left:{days}", words.get("digest.show_left", count=view.left)),),)


def _labels(view: DigestView) -> list[str]:
    """Return the bars' labels; if there are many bars, only some have one."""
    bars = view.bars
    if view.unit == "hour":
        return [f"{bar.at:%H}" if bar.at.hour % HOURS_APART == 0 else "" for bar in bars]
    apart = -(-len(bars) // MOST_LABELS)
    # The newest day is always named.
    return [f"{bar.at:%m-%d}" if (len(bars) - 1 - place) % apart == 0 else "" for place, bar in enumerate(bars)]


# Alerts ---------------------------------------------------------------------------------------------------------------


ALERT_HEADS = {
    "battery": ("alert.low", "alert.charged"),
    "heat": ("alert.hot", "alert.cool"),
    "disk": ("alert.full", "alert.room"),
    "settings": ("alert.wrong", "alert.right"),
    "limit": ("alert.spent", "alert.back"),
    "webhook": ("alert.undelivered", "alert.back"),
}


def alert_card(view: AlertView, words: Texts) -> Card:
    """Return the card of an alert: since when something is down, or how long it was."""
    name = words.get(f"alert.{view.subject}", name=view.name)
    down, back = ALERT_HEADS.get(view.subject, ("alert.down", "alert.back"))
    since = Line(f"{view.since:%m-%d %H:%M}", words.get("alert.since"))
    if view.seconds is not None:
        how_long = words.get("alert.took" if view.subject in {"battery", "heat"} else "alert.lasted")
        return Card(words.get(back, name=name), (since, Line(lasted(view.seconds, words), how_long)))
    why = " ".join(view.why.split())
    why = words.get(f"status.phone_{why}") if why in {"offline", "unauthorized"} else why
    why = words.get(f"alert.limit_{why}", **view.figures) if view.subject == "limit" else why
    lines = (
        since,
        *((Line(cut(why, MOST_WHY), words.get("alert.why"), "quote"),) if why else ()),
        Line(words.get(f"alert.advice_{view.subject}")),
    )
    return Card(words.get(down, name=name), lines)


def lasted(seconds: float, words: Texts) -> str:
    """Return a span of time in words: minutes, or hours and minutes."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return words.get("alert.minutes", minutes=minutes)
    return words.get("alert.hours", hours=minutes // 60, minutes=minutes % 60)


SUBJECT = Subject(commands={"digest": digest}, buttons={"digest": _tapped})
