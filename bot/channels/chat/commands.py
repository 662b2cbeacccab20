"""Reading commands: with and without a slash, with Chinese quotes and punctuation."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import NamedTuple

from agent_core.loop.tasks import NO_RULES, TaskRules
from bot.desk.actors import Role

COMMANDS = (
    "start", "run", "plan", "sweep", "stop", "hold", "resume", "ask", "status", "devices", "screen", "history",
    "replay", "digest", "schedule", "watch", "kb", "answers", "contacts", "people", "invite", "console", "settings",
    "whoami", "help",
)  # fmt: skip
# The least role that has a use for a command; the others are for everybody who is paired. The desk checks each call.
LEAST = {
    "run": Role.OPERATOR,
    "plan": Role.OPERATOR,
    "sweep": Role.OPERATOR,
    "stop": Role.OPERATOR,
    "hold": Role.OPERATOR,
    "resume": Role.OPERATOR,
    "contacts": Role.OPERATOR,
    "people": Role.OWNER,
    "invite": Role.OWNER,
}
# Commands that make no sense in a group.
NOT_IN_GROUPS = frozenset({"start", "invite", "console", "settings"})

# Chinese commands without a slash. A word that takes an argument needs a blank or a colon before it, and the others
# must stand alone, so that a sentence that only begins with such a word is not a command.
_WITH_ARGUMENT = {
    "运行": "run", "执行": "run", "规划": "plan",
    "定时": "schedule", "知识库": "kb", "问答记录": "answers", "历史": "history",
    "回放": "replay", "巡检": "sweep", "扫一遍": "sweep", "小结": "digest",
    "盯着": "watch", "值守": "watch",
}  # fmt: skip
_ALONE = {
    "停止": "stop",
    "停": "stop",
    "暂停任务": "hold",
    "继续": "resume",
    "继续任务": "resume",
    "提问": "ask",
    "待答": "ask",
    "状态": "status",
    "手机": "devices",
    "设备": "devices",
    "截图": "screen",
    "屏幕": "screen",
    "看屏幕": "screen",
    "联系人": "contacts",
    "人员": "people",
    "邀请": "invite",
    "控制台": "console",
    "设置": "settings",
    "帮助": "help",
    "我是谁": "whoami",
}
_CHINESE = {**_WITH_ARGUMENT, **_ALONE}
# Words that are not commands, but so close to one that a person who writes only them means the desk.
_CLOSE = ("暂停", "停下", "中止", "恢复", "pause", "cancel", "quit")
# Words that other bots have as commands, and what is meant by them here.
_ELSEWHERE = {"lang": "settings", "language": "settings", "语言": "settings"}

QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "「": "」", "『": "』", "＂": "＂", "《": "》"}
_WORD = re.compile(r"[\"“「『](?P<quoted>[^\"”」』]+)[\"”」』]|[^\s,，]+")

NEAR = 0.7  # how similar to a command a word must be to be taken for a typing error


@dataclass(frozen=True, slots=True)
class Command:
    """A command. ``name`` is one of COMMANDS; ``rest`` is the text after it, as it was written."""

    name: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A word with a slash that is not a command. ``nearest`` is the command that may have been meant, or ""."""

    written: str
    nearest: str = ""


# Beginnings of shell commands: a copied prompt, a variable that is set, a path to a program, or a program's name. They
# are case-sensitive, as in a shell. Names that may begin a shop's sentence ("cat", "clear", "find") are left out.
_PROGRAMS = (
    "phonedesk make cd ls ll pwd sudo su pip pip3 pipx uv python python3 pytest git docker adb apt apt-get brew npm "
    "ssh scp curl wget rm cp mv mkdir chmod chown systemctl journalctl bash sh zsh nano vim vi exit quit logout"
)
_SHELL = re.compile(
    rf"\$\s|(?:export\s+)?[A-Z][A-Z0-9_]*=|[.~][\w.~-]*/|(?:{'|'.join(_PROGRAMS.split())})(?:\s|$)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ForAnotherBot:
    """A command that names another bot after the @."""


def usable(role: Role, *, plans: bool) -> tuple[str, ...]:
    """Return the commands that somebody in this role has a use for, in the order of ``COMMANDS``.

    plans: whether a planner is set up; without one ``/plan`` only tells how to set it up.
    """
    return tuple(name for name in COMMANDS if role.covers(LEAST.get(name, Role.VIEWER)) and (plans or name != "plan"))


def chinese_of(name: str) -> tuple[str, ...]:
    """Return the Chinese words for a command without a slash, with ``…`` if an argument may follow."""
    longer = [f"{word} …" for word, meant in _WITH_ARGUMENT.items() if meant == name]
    return (*longer, *(word for word, meant in _ALONE.items() if meant == name))


def parse(text: str, *, bot_name: str = "") -> Command | Unknown | ForAnotherBot | None:
    """Return the command in a message; None for free text. ``bot_name``: without the @."""
    text = text.replace("\u3000", " ").replace("／", "/").strip()
    if text.startswith("/"):
        return _slashed(text[1:], bot_name)
    if text in _ALONE:
        return Command(_ALONE[text])
    for word, name in _WITH_ARGUMENT.items():
        if text.startswith(word):
            after = text[len(word) :]
            if not after or after[0] in " \n\t:：,，":
                return Command(name, after.lstrip(" \n\t:：,，"))
    return None


def rest_of(text: str) -> str:
    """Return what a message says after its command; "" if it has none."""
    written = parse(text)
    return written.rest if isinstance(written, Command) else ""


def is_slashed(text: str) -> bool:
    """Tell whether a text begins with a slash, also a full-width one."""
    return text.lstrip().startswith(("/", "／"))


def is_like_a_command(text: str) -> bool:
    """Tell whether a text may be meant for the desk or a shell: a command, or a command's word with anything after it.

    A word ends at a blank, at punctuation, or before a character that is not a letter of its own script: "stop 3",
    "停止3" and "暂停。" are like commands. "停止发货了吗" and "运行很稳定" continue in the same script, and are
    sentences.
    """
    said = text.replace("\u3000", " ").strip()
    if is_slashed(said) or parse(said) is not None or _SHELL.match(said):
        return True
    return any(
        said[: len(word)].casefold() == word and not _goes_on(word, said[len(word) :])
        for word in (*COMMANDS, *_CHINESE, *_CLOSE)
    )


def _goes_on(word: str, rest: str) -> bool:
    """Tell whether ``rest`` continues a sentence that begins with ``word``, instead of being an argument."""
    if not rest:
        return False
    return rest[0].isalpha() and rest[0].isascii() is word.isascii()


def _slashed(text: str, bot_name: str) -> Command | Unknown | ForAnotherBot:
    match = re.match(r"([^\s@:：]*)(?:@(\w+))?[:：]?\s*(.*)", text, re.DOTALL)
    if match is None:
        return Unknown("/")
    written, target, rest = match.group(1), match.group(2) or "", match.group(3).strip()
    if target and bot_name and target.lower() != bot_name.lower():
        return ForAnotherBot()
    name = _CHINESE.get(written, written.lower())
    if name in COMMANDS:
        return Command(name, rest)
    swapped = [known for known in COMMANDS if sorted(known) == sorted(name)]  # difflib misses the short ones
    close = (
        [_ELSEWHERE[name]]
        if name in _ELSEWHERE
        else swapped or difflib.get_close_matches(name, [*COMMANDS, *_CHINESE], n=1, cutoff=NEAR)
    )
    return Unknown(f"/{written}", f"/{_CHINESE.get(close[0], close[0])}" if close else "")


def unquoted(text: str) -> str:
    """Return the text without a pair of quotes around all of it."""
    text = text.strip()
    if len(text) >= 2 and QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
        return text[1:-1].strip()
    return text


def words_of(text: str) -> list[str]:
    """Split a text at blanks and commas. A text in quotes is one word."""
    return [(match["quoted"] or match[0]).strip() for match in _WORD.finditer(text)]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request of ``/run``. ``phone``: a serial or name as it was written, "" for none."""

    task: str
    phone: str = ""
    rules: TaskRules = NO_RULES


_INQUOTES = r"[\"“「『][^\"”」』]+[\"”」』]"
_OPTION = re.compile(
    rf"(?:-d|--(?P<name>device|policy|app))(?:\s*=\s*|\s+)(?P<value>{_INQUOTES}|\S+)\s*", re.IGNORECASE
)


def read_run(rest: str) -> RunRequest:
    """Read ``[-d PHONE] [--policy NAME] [--app APP]… TASK``, with the task in quotes or without."""
    given: dict[str, list[str]] = {"device": [], "policy": [], "app": []}
    rest = rest.strip()
    while match := _OPTION.match(rest):
        given[(match["name"] or "device").lower()].append(unquoted(match["value"]))
        rest = rest[match.end() :]
    last = {name: values[-1] if values else "" for name, values in given.items()}
    return RunRequest(unquoted(rest), last["device"], TaskRules(last["policy"].lower(), tuple(given["app"])))


# Times ----------------------------------------------------------------------------------------------------------------

_PERIODS = {
    "today": "today", "今天": "today", "今日": "today",
    "week": "week", "一周": "week", "本周": "week", "这周": "week", "近一周": "week",
    "month": "month", "一个月": "month", "本月": "month", "近一个月": "month",
}  # fmt: skip
_YESTERDAY = {"yesterday", "昨天", "昨日"}
_PERIOD = re.compile(r"\d{1,4}[mhdw]|\d{4}-\d\d-\d\d", re.ASCII)
_DAYS = re.compile(r"(\d{1,4})天")


class Times(NamedTuple):
    """Times as in ``AnswersAsked``. ``until``: "" if the word names no end."""

    since: str
    until: str = ""


def times_of(word: str) -> Times | None:
    """Read a lower-case word as a time (``week``, ``昨天``, ``3天``, ``7d``, ``2026-11-01``); None if it is not a
    time.
    """
    if word in _PERIODS:
        return Times(_PERIODS[word])
    if word in _YESTERDAY:
        return Times("yesterday", "yesterday")
    if found := _DAYS.fullmatch(word):
        return Times(f"{found[1]}d")
    return Times(word) if _PERIOD.fullmatch(word) else None
