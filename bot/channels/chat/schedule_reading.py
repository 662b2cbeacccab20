"""Reading the arguments of ``/schedule``: verbs, times and fields, in Chinese or English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent_core.errors import InputRejected
from agent_core.loop.tasks import NO_RULES, TaskRules
from bot.channels.chat.commands import QUOTES, unquoted
from bot.desk.actors import BadRequest
from bot.desk.schedules_views import NO_WISH, ScheduleWish
from scheduler.times.natural import understand
from scheduler.times.splitting import split, task_after, unclear_beginning

_VERBS = {
    "add": ("add", "new", "添加", "新增", "新建"),
    "edit": ("edit", "change", "修改", "编辑", "改"),
    "list": ("list", "列表"),
    "show": ("show", "查看"),
    "pause": ("pause", "暂停", "停用"),
    "resume": ("resume", "恢复", "启用"),
    "run": ("run", "now", "立即执行", "执行", "运行"),
    "remove": ("remove", "delete", "删除"),
    "undo": ("undo", "撤销", "撤回"),
}
_VERB = {word: verb for verb, words in _VERBS.items() for word in words}
_FIELDS = {
    "when": ("when", "time", "时间"),
    "task": ("task", "任务"),
    "phone": ("phone", "device", "手机"),
    "chat": ("chat", "聊天"),
    "tz": ("tz", "timezone", "时区"),
    "missed": ("missed", "错过"),
    "overlap": ("overlap", "重叠"),
    "quiet": ("quiet", "安静时段", "免打扰"),
    "jitter": ("jitter", "随机延迟"),
    "policy": ("policy", "规则"),
    "app": ("app", "应用"),
}
_FIELD = {word: name for name, words in _FIELDS.items() for word in words}
_NAMES = "|".join(sorted(_FIELD, key=len, reverse=True))
# ``--quiet 22:00-07:00``, ``安静时段：22:00-07:00``, and at the beginning also ``安静时段 22:00-07:00``.
_NAMED = re.compile(
    rf"(?:^|(?<=[\s;；]))(?:(?:--|—+)(?P<dashed>{_NAMES})(?:\s*[=:：]\s*|\s+)|(?P<plain>{_NAMES})[ \t]*[:：][ \t]*)"
    rf"|^(?P<first>{_NAMES})\s+",
    re.IGNORECASE,
)
_VALUE = r"[\"“「『][^\"”」』]*[\"”」』]|\S+"
_OPTION = re.compile(rf"(?:-d|(?:--|—+)(?P<name>{_NAMES}))(?:\s*[=:：]\s*|\s+)(?P<value>{_VALUE})\s*", re.IGNORECASE)
_CRON_FIELD = re.compile(r"[\d*/,\-?LW#]+|[A-Za-z]{3}(?:[-,][A-Za-z]{3})*", re.ASCII)
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)  # only the words are checked, not whether the day is over
_WATCH = re.compile(r"(盯着|值守|watch)(?:$|[\s:：,，]+)", re.IGNORECASE)
_CHOICES = {
    "跳过": "skip", "不补": "skip", "补做": "catch_up", "补一次": "catch_up", "catch-up": "catch_up",
    "catchup": "catch_up", "排队": "queue",
}  # fmt: skip
_NONE = {"", "-", "none", "off", "any", "无", "没有", "不要", "任意", "都行", "默认"}
_HERE = {"here", "这里", "本群", "此处"}
_LENGTH = re.compile(r"(\d{1,6})\s*(s|sec|seconds?|m|min|minutes?|秒钟?|分钟?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A request of ``/schedule``.

    schedule_id: for all verbs but add and list.
    rules None, and "" in other fields, mean that they were not given.
    here: show the schedule's cards in the chat of this message.
    """

    verb: str
    expression: str = ""
    task: str = ""
    schedule_id: str = ""
    rules: TaskRules | None = None
    wish: ScheduleWish = NO_WISH
    here: bool = False


def read_schedule(rest: str) -> ScheduleRequest | None:
    """Read ``add WHEN [--OPTION VALUE]… TASK``, ``edit N FIELD: VALUE …``, ``list``, ``VERB N``, ``N``, ``WHEN TASK``.

    Returns None if something is missing. Raises BadRequest for a value that cannot be read, and InputRejected if time
    and task cannot be told apart.
    """
    verb, after = _verb(rest.strip())
    if verb == "list":
        return ScheduleRequest("list")
    if verb == "add":
        return _adding(after)
    number = re.fullmatch(r"[#＃]?\s*(\d+)", after) if verb != "edit" else None
    if verb == "edit":
        return _editing(after)
    if verb:
        named = after.lstrip("#＃ ")
        return ScheduleRequest(verb, schedule_id=number[1] if number else named) if named else None
    if number:
        return ScheduleRequest("show", schedule_id=number[1])
    return None if _WATCH.match(after) else _adding(after)


def read_timed(said: str) -> ScheduleRequest | None:
    """Read a sentence that begins with a time and continues with a task. Returns None for any other.

    Raises InputRejected if it begins with a time that is not understood, or whose end is not clear.
    """
    when, task = split(said.strip())
    if not when or not task:
        return None
    understand(when, "UTC", _ANY_DAY)
    return ScheduleRequest("add", when, task, rules=NO_RULES)


def what_is_missing(rest: str) -> tuple[str, str]:
    """Return the time that was understood, and the text, of a schedule that ``read_schedule`` could not read."""
    verb, text = _verb(rest.strip())
    text = text if verb in {"", "add"} else ""
    return _split_expression(_options(text, {}))[0], text


def verb_of(rest: str) -> str:
    """Return the verb that was meant; "" for none."""
    return _verb(rest.strip())[0]


def _verb(text: str) -> tuple[str, str]:
    if not text:
        return "list", ""
    word, after = [*text.split(maxsplit=1), ""][:2]
    if word.lower() in _VERB:
        return _VERB[word.lower()], after.strip()
    for said in sorted(_VERB, key=len, reverse=True):  # 暂停3, 修改#3
        if not said.isascii() and re.match(rf"{said}\s*[:：#＃\d]", text):
            return _VERB[said], text[len(said) :].lstrip(" :：")
    return "", text


def _adding(text: str) -> ScheduleRequest | None:
    given: dict[str, list[str]] = {}
    text = _options(text, given)
    if watch := _WATCH.match(text):  # it has no time
        whom = _options(text[watch.end() :], given, anywhere=True).strip()
        task = f"{watch[1]} {whom}".strip()
        return ScheduleRequest("add", "", task, rules=_rules(given) or NO_RULES, wish=_wish(given))
    expression, rest = _split_expression(text)
    task = _options(rest, given)
    if task != rest and text[:1] not in QUOTES:
        task = task_after(expression, " " + task)
    task = unquoted(task)
    if not expression or not task:
        return None
    return ScheduleRequest("add", expression, task, rules=_rules(given) or NO_RULES, wish=_wish(given))


def _options(text: str, given: dict[str, list[str]], *, anywhere: bool = False) -> str:
    """Move the options from the beginning of a text, or from anywhere, into ``given``, and return the rest."""
    find = re.compile(rf"(?:^|(?<=\s))(?:{_OPTION.pattern})", re.IGNORECASE).search if anywhere else _OPTION.match
    while match := find(text):
        given.setdefault(_FIELD[(match["name"] or "phone").lower()], []).append(unquoted(match["value"]))
        text = text[: match.start()] + text[match.end() :]
    return text


def _editing(text: str) -> ScheduleRequest | None:
    match = re.match(r"[#＃]?\s*(\d+)[\s:：,，]*(.*)", text, re.DOTALL)
    if match is None or not match[2].strip():
        return None
    fields = match[2].strip()
    found = list(_NAMED.finditer(fields))
    given: dict[str, list[str]] = {}
    unnamed = fields[: found[0].start()] if found else fields
    if unnamed.strip():
        given["when"] = [_time_alone(unnamed.strip().rstrip(";；,，"))]
    for named, following in zip(found, [*found[1:], None][: len(found)], strict=True):
        name = _FIELD[(named["dashed"] or named["plain"] or named["first"]).lower()]
        value = fields[named.end() : following.start() if following else None].strip().rstrip(";；")
        given.setdefault(name, []).append(unquoted(value))
    return ScheduleRequest(
        "edit",
        _last(given, "when"),
        _last(given, "task"),
        match[1],
        _rules(given),
        _wish(given),
        here=_last(given, "chat").lower() in _HERE,
    )


def _time_alone(text: str) -> str:
    """Return the new time, the only field that needs no name. Raises BadRequest if the text has more than a time."""
    try:
        when, rest = _split_expression(text)
    except InputRejected as error:
        when, rest = str(error.values["understood"]), str(error.values["rest"])
    if not when or not rest:
        return unquoted(text)
    said = f"Understood as the new time: {when}; not: {rest!r}."
    advice = "Name what is changed, for example when: daily at 10:00 task: QQ回复联系人12."
    raise BadRequest(said, advice=advice, key="schedule_unnamed", understood=when, rest=rest)


def _last(given: Mapping[str, list[str]], name: str) -> str:
    return given[name][-1] if name in given else ""


def _rules(given: Mapping[str, list[str]]) -> TaskRules | None:
    if not {"policy", "app"} & given.keys():
        return None
    policy = _last(given, "policy").lower()
    return TaskRules("" if policy in _NONE else policy, tuple(app for app in given.get("app", []) if app not in _NONE))


def _wish(given: Mapping[str, list[str]]) -> ScheduleWish:
    said: dict[str, Any] = {}
    for name, field in (("phone", "serial"), ("tz", "timezone"), ("quiet", "quiet")):
        if name in given:
            value = _last(given, name)
            said[field] = "" if value.lower() in _NONE and name != "tz" else value
    for name in ("missed", "overlap"):
        if name in given:
            value = _last(given, name).lower()
            said[name] = _CHOICES.get(value, value)
    if "jitter" in given:
        said["jitter_seconds"] = _seconds(_last(given, "jitter"))
    return ScheduleWish(**said)


def _seconds(text: str) -> int:
    if text.lower() in _NONE:
        return 0
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        said = f"This is no length of time: {text}."
        raise BadRequest(said, advice="Write it as 60 or 2m.", key="bad_duration", said=text)
    return int(match[1]) * (60 if (match[2] or "s").lower().startswith(("m", "分")) else 1)


def _split_expression(text: str) -> tuple[str, str]:
    """Return the time, quoted or in one of the known forms, and the rest."""
    if text and text[0] in QUOTES:
        end = text.find(QUOTES[text[0]], 1)
        return (text[1:end].strip(), text[end + 1 :].strip()) if end > 0 else ("", "")
    words = text.split()
    if not words:
        return "", ""
    count = 0
    if words[0].startswith("@"):
        count = 1
    elif len(words) > 5 and all(_CRON_FIELD.fullmatch(word) for word in words[:5]) and not words[0].isalpha():
        count = 5
    if not count:
        when, rest = split(text)
        if when or words[0].lower() != "every":
            return when, rest if when else ""
        return " ".join(words[:2]), " ".join(words[2:])  # not a valid time, which the error will say
    when, after = " ".join(words[:count]), re.split(r"(?<=\S)(?=\s)", text, maxsplit=count)[count:]
    rest = after[0] if after else ""
    one_more = count > 1 and "\n" not in rest[: len(rest) - len(rest.lstrip())]
    if one_more and re.search(r"[\d*]", words[count]) and _CRON_FIELD.fullmatch(words[count]):
        raise unclear_beginning(when, rest.strip())  # it has six fields, or the task begins with a number
    return when, task_after(when, rest)
