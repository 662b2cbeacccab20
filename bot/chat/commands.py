"""Reading what people write as commands: with and without a slash, with Chinese quotes and punctuation."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from agent_core.tasks import NO_RULES, TaskRules
from bot.desk.actors import Role

COMMANDS = (
    "start", "run", "stop", "hold", "resume", "ask", "status", "devices", "screen", "history", "replay", "digest",
    "schedule", "kb", "answers", "contacts", "people", "invite", "settings", "whoami", "help",
)  # fmt: skip
# Who has a use for them at all; every other one is for everybody who is paired. The desk decides on each call.
LEAST = {
    "run": Role.OPERATOR,
    "stop": Role.OPERATOR,
    "hold": Role.OPERATOR,
    "resume": Role.OPERATOR,
    "contacts": Role.OPERATOR,
    "people": Role.OWNER,
    "invite": Role.OWNER,
}
# What makes sense where others read along.
NOT_IN_GROUPS = frozenset({"start", "invite", "settings"})

# What is said in Chinese without a slash. A word that takes something after it needs a blank or a colon in between, and
# the others must stand alone, so that a sentence that merely begins so stays a sentence.
_WITH_ARGUMENT = {
    "运行": "run", "执行": "run", "定时": "schedule", "知识库": "kb", "问答记录": "answers", "历史": "history",
    "回放": "replay", "小结": "digest",
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
    "设置": "settings",
    "帮助": "help",
    "我是谁": "whoami",
}
_CHINESE = {**_WITH_ARGUMENT, **_ALONE}

_QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "「": "」", "『": "』", "＂": "＂", "《": "》"}
_SCHEDULE_VERBS = {
    "add": "add",
    "list": "list",
    "pause": "pause",
    "resume": "resume",
    "remove": "remove",
    "delete": "remove",
    "添加": "add",
    "列表": "list",
    "暂停": "pause",
    "恢复": "resume",
    "删除": "remove",
}
_CRON_FIELD = re.compile(r"[\d*/,\-?LW#]+|[A-Za-z]{3}(?:[-,][A-Za-z]{3})*", re.ASCII)


NEAR = 0.7  # how like a command a word must be to be taken for a slip of the finger


@dataclass(frozen=True, slots=True)
class Command:
    """``name`` is one of COMMANDS; ``rest`` is what follows, as it was written."""

    name: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something with a slash that is no command. ``nearest`` is the one that may have been meant, or empty."""

    written: str
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class ForAnotherBot:
    """A command with the name of another bot behind the @."""


def usable(role: Role) -> tuple[str, ...]:
    """The commands that somebody in this role has a use for, in the order of ``COMMANDS``."""
    return tuple(name for name in COMMANDS if role.covers(LEAST.get(name, Role.VIEWER)))


def parse(text: str, *, bot_name: str = "") -> Command | Unknown | ForAnotherBot | None:
    """The command in a message; None for free text. ``bot_name`` without the @."""
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
    close = difflib.get_close_matches(name, [*COMMANDS, *_CHINESE], n=1, cutoff=NEAR)
    return Unknown(f"/{written}", f"/{_CHINESE.get(close[0], close[0])}" if close else "")


def unquoted(text: str) -> str:
    """The text without one pair of quotes around all of it."""
    text = text.strip()
    if len(text) >= 2 and _QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
        return text[1:-1].strip()
    return text


@dataclass(frozen=True, slots=True)
class RunRequest:
    task: str
    phone: str = ""
    rules: TaskRules = NO_RULES


_OPTION = re.compile(r"(?:-d|--(?P<name>device|policy|app))(?:\s*=\s*|\s+)(?P<value>\S+)\s*", re.IGNORECASE)


def read_run(rest: str) -> RunRequest:
    """``[-d PHONE] [--policy NAME] [--app APP]… TASK``; the task in quotes or not."""
    given: dict[str, list[str]] = {"device": [], "policy": [], "app": []}
    rest = rest.strip()
    while match := _OPTION.match(rest):
        given[(match["name"] or "device").lower()].append(unquoted(match["value"]))
        rest = rest[match.end() :]
    last = {name: values[-1] if values else "" for name, values in given.items()}
    return RunRequest(unquoted(rest), last["device"], TaskRules(last["policy"].lower(), tuple(given["app"])))


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """``verb`` is add, list, pause, resume or remove; ``schedule_id`` for the last three."""

    verb: str
    expression: str = ""
    task: str = ""
    schedule_id: str = ""
    rules: TaskRules = NO_RULES


def read_schedule(rest: str) -> ScheduleRequest | None:
    """``add EXPRESSION [--policy NAME] [--app APP]… TASK``, ``list`` or ``VERB ID``. None where it is none of these."""
    word, _, after = rest.strip().partition(" ")
    after = after.strip()
    verb = _SCHEDULE_VERBS.get(word.lower())
    if verb is None:
        return ScheduleRequest("list") if not word else None
    if verb == "list":
        return ScheduleRequest("list")
    if verb == "add":
        expression, task = _split_expression(after)
        run = read_run(task)
        if not expression or not run.task:
            return None
        return ScheduleRequest("add", expression, run.task, rules=run.rules)
    return ScheduleRequest(verb, schedule_id=after.lstrip("#")) if after else None


def _split_expression(text: str) -> tuple[str, str]:
    """The time, quoted or in one of the known forms, and the rest."""
    if text and text[0] in _QUOTES:
        end = text.find(_QUOTES[text[0]], 1)
        return (text[1:end].strip(), text[end + 1 :].strip()) if end > 0 else ("", "")
    words = text.split()
    if not words:
        return "", ""
    count = 1
    if words[0].lower() in {"every", "at"}:
        count = 3 if len(words) > 2 and re.fullmatch(r"\d{4}-\d\d-\d\d", words[1]) else 2
    elif not words[0].startswith("@"):
        count = 5
        if len(words) < 6 or not all(_CRON_FIELD.fullmatch(word) for word in words[:5]):
            return "", ""
    return " ".join(words[:count]), text.split(maxsplit=count)[count] if len(words) > count else ""
