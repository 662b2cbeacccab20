"""``/devices``: the phones, and how owners connect, pair, name and set them up."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from agent_core.devices.adb.brands import owner_steps
from bot.channels.chat import commands, learning
from bot.channels.chat.cards import MOST_ACTION_BYTES, Button, Card, Line
from bot.channels.chat.run_cards import run_line
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import PhoneKept, PhoneView, RunStatus, RunView, StatusView

if TYPE_CHECKING:
    from agent_core.devices.adb.setup import SetupChange, SetupReport

Mode = Literal["plan", "done", "undo"]
QR_BORDER = 3  # modules of white, without which scanners miss it
QR_SCALE = 12  # pixels of a module in the picture
_QR_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}  # upper, lower: is dark
_UNDO = {"undo", "还原", "撤销"}


async def devices(turn: Turn) -> Said:
    """Handle ``/devices``."""
    wanted = learning.asked(turn.rest)
    if wanted is not None:
        return await learning.learn(turn, wanted)
    words = commands.words_of(turn.rest)
    handler = _VERBS.get(words[0].casefold()) if words else None
    if handler is not None:
        return await handler(turn, words[1:])
    return turn.say(devices_card(await turn.desk.status(turn.actor), turn.texts))


def devices_card(status: StatusView, texts: Texts) -> Card:
    """Return each phone with its serial, its state, its active run, its parked runs and the runs that wait for it."""
    lines = [line for phone in status.phones for line in _device_lines(phone, status.runs, texts)]
    waiting = sum(1 for run in status.runs if not run.serial and run.status is RunStatus.QUEUED)
    if waiting:
        lines.append(Line(texts.get("devices.any_phone", count=waiting), texts.get("devices.queue")))
    none = (Line(texts.get("status.no_phones")),)
    return Card(texts.get("devices.title"), tuple(lines) if status.phones else (*none, *lines))


def _device_lines(phone: PhoneView, runs: Sequence[RunView], texts: Texts) -> list[Line]:
    here = [run for run in runs if run.serial == phone.serial]
    queued = [run for run in here if run.status is RunStatus.QUEUED]
    # A run that waits for a person keeps the phone for a while and then parks. Only the lease tells which it is.
    at_work = [run for run in here if run.status is RunStatus.RUNNING or run.id == phone.run_id]
    parked = [run for run in here if run not in queued and run not in at_work]
    lines = [
        Line(phone_state(phone, texts), phone.name or phone.serial),
        Line(phone.serial, texts.get("devices.serial"), "code"),
    ]
    if phone.tags:
        lines.append(Line(" ".join(f"#{tag}" for tag in phone.tags), texts.get("devices.tags")))
    lines += [Line(run_line(run, texts), texts.get("devices.runs")) for run in at_work]
    lines += [Line(run_line(run, texts), texts.get("devices.parked")) for run in parked]
    if queued:
        said = texts.get("devices.waiting", count=len(queued), task=queued[0].task)
        lines.append(Line(said, texts.get("devices.queue")))
    return lines


def phone_state(phone: PhoneView, texts: Texts) -> str:
    """Return a phone's state in words."""
    if phone.state == "away":
        since = phone.since.strftime("%m-%d %H:%M") if phone.since is not None else ""
        return texts.get("status.phone_away", host=phone.host, since=since)
    said = texts.get(f"status.phone_{phone.state}")
    return texts.get("status.phone_at", state=said, host=phone.host) if phone.host else said


# Connecting -----------------------------------------------------------------------------------------------------------


async def _connect(turn: Turn, words: Sequence[str]) -> Said:
    if len(words) != 1:
        return turn.tell(turn.texts.get("usage.devices_connect"))
    return _kept(turn, "attached.connected", await turn.desk.phones.connect(turn.actor, words[0]))


async def _disconnect(turn: Turn, words: Sequence[str]) -> Said:
    if len(words) != 1:
        return turn.tell(turn.texts.get("usage.devices_connect"))
    return _kept(turn, "attached.disconnected", await turn.desk.phones.disconnect(turn.actor, words[0]))


async def _pair(turn: Turn, words: Sequence[str]) -> Said:
    """Pair by address and code; without them show a QR code, and wait for a phone to scan it."""
    texts, phones = turn.texts, turn.desk.phones
    if len(words) == 2:
        return turn.tell(texts.get("attached.paired", phone=await phones.pair(turn.actor, words[0], words[1])))
    if words or turn.show is None:
        return turn.tell(texts.get("usage.devices_pair"))
    from agent_core.devices.adb.pairing import SCAN_SECONDS, new_offer

    await phones.can_scan(turn.actor)
    offer = new_offer()
    scan = Line(texts.get("attached.scan", seconds=round(SCAN_SECONDS)))
    lines = (scan, Line(texts.get("attached.pair_by_code")))
    card = Card(texts.get("attached.pair_title"), lines, qr_picture(offer.payload))
    await turn.show(Outgoing(card, turn.chat, turn.incoming.message_id))
    return turn.tell(texts.get("attached.paired", phone=await phones.pair_by_scan(offer)))


def qr_picture(text: str) -> bytes:
    """Return the code of a text as a PNG."""
    import segno

    data = io.BytesIO()
    segno.make_qr(text).save(data, kind="png", scale=QR_SCALE, border=QR_BORDER)
    return data.getvalue()


def qr_lines(text: str) -> list[str]:
    """Return the code of a text as lines, to be written black on white. A line is two rows of modules high."""
    import segno

    rows = [[bool(dark) for dark in row] for row in segno.make_qr(text).matrix_iter(border=QR_BORDER)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return ["".join(_QR_HALVES[both] for both in zip(upper, lower, strict=True)) for upper, lower in pairs]


# Names and tags -------------------------------------------------------------------------------------------------------


async def _name(turn: Turn, words: Sequence[str]) -> Said:
    if not words:
        return turn.tell(turn.texts.get("usage.devices_name"))
    name = " ".join(words[1:])
    kept = await turn.desk.phones.rename(turn.actor, words[0], name)
    return _kept(turn, "attached.named" if name else "attached.unnamed", kept, name=name)


async def _tag(turn: Turn, words: Sequence[str]) -> Said:
    if len(words) < 2:
        return turn.tell(turn.texts.get("usage.devices_tag"))
    kept = await turn.desk.phones.tag(turn.actor, words[0], words[1:])
    return _kept(turn, "attached.tagged", kept, tags=" ".join(word.lstrip("#") for word in words[1:]))


async def _untag(turn: Turn, words: Sequence[str]) -> Said:
    if not words:
        return turn.tell(turn.texts.get("usage.devices_tag"))
    return _kept(turn, "attached.untagged", await turn.desk.phones.tag(turn.actor, words[0], words[1:], away=True))


def _kept(turn: Turn, key: str, kept: PhoneKept, **values: str) -> Said:
    if kept.again:
        more = turn.texts.get("attached.again", setting=kept.again, phone=kept.serial)
    else:
        more = turn.texts.get("attached.hidden" if kept.hidden else "attached.kept", file=kept.file)
    return turn.tell(turn.texts.get(key, phone=kept.serial, **values), more)


# Setting up -----------------------------------------------------------------------------------------------------------


async def _setup(turn: Turn, words: Sequence[str]) -> Said:
    """Show the planned changes, with a button to make them; ``undo`` undoes them."""
    undo = bool(words) and words[0].casefold() in _UNDO
    phone = " ".join(words[1:] if undo else words) or turn.incoming.phone
    if undo:
        return await _reported(turn, await turn.desk.phones.undo_setup(turn.actor, phone), "undo")
    report = await turn.desk.phones.plan_setup(turn.actor, phone)
    action = f"setup:{report.serial}"
    button = Button(action, turn.texts.get("attached.button_setup"), "primary")
    can = report.changes and len(action.encode()) <= MOST_ACTION_BYTES
    return await _reported(turn, report, "plan", ((button,),) if can else ())


async def _set_up(turn: Turn, serial: str) -> Said:
    """Handle the button that sets a phone up."""
    return await _reported(turn, await turn.desk.phones.set_up(turn.actor, serial), "done")


async def _reported(turn: Turn, report: SetupReport, mode: Mode, buttons: tuple[tuple[Button, ...], ...] = ()) -> Said:
    (phone,) = await turn.desk.phones.names([report.serial])
    title, *lines = setup_lines(report, phone, owner_steps(report.brand, turn.texts.lang), turn.texts, mode=mode)
    if mode == "done" and report.changes:
        lines.append(turn.texts.get("setup.undo_by"))
    return turn.say(Card(title, tuple(map(Line, lines)), None, buttons))


def setup_lines(report: SetupReport, phone: str, steps: Sequence[str], words: Texts, *, mode: Mode) -> list[str]:
    """Return the changes of a setup, made or planned, and the steps left to the owner. The first line is a title.

    phone: the name of the phone.
    """
    lines = [words.get(f"setup.{mode}" if report.changes else f"setup.{mode}_nothing", phone=phone)]
    lines += [f"• {_change(change, words)}" for change in report.changes]
    if report.left:
        lines += [words.get("setup.left"), *(f"• {words.get(f'setup.key_{change.key}')}" for change in report.left)]
    if mode == "undo":
        return lines
    if not report.keyboard:
        lines.append(words.get("setup.no_keyboard"))
    if report.input_denied:
        lines.append(words.get("setup.input_denied"))
    return [*lines, words.get("setup.steps"), *(f"• {step}" for step in steps)]


def _change(change: SetupChange, words: Texts) -> str:
    """Return one change in words: "window animations: 1.0 → 0"."""
    what = words.get(f"setup.key_{change.key}")
    states = (words.find(f"setup.is_{state}", state) for state in (change.old, change.new))
    return f"{what}{words.get('common.colon')}{' → '.join(states)}"


_VERBS: Mapping[str, Callable[[Turn, Sequence[str]], Awaitable[Said]]] = {
    **dict.fromkeys(("connect", "连接"), _connect),
    **dict.fromkeys(("disconnect", "断开"), _disconnect),
    **dict.fromkeys(("pair", "配对"), _pair),
    **dict.fromkeys(("name", "命名", "起名"), _name),
    **dict.fromkeys(("tag", "标签"), _tag),
    **dict.fromkeys(("untag", "去标签"), _untag),
    **dict.fromkeys(("setup", "设置"), _setup),
}
SUBJECT = Subject(commands={"devices": devices}, buttons={"setup": _set_up})
