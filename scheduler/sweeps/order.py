"""The target of a sweep or a watch, as people write it: ``11 小王``, ``#vip``, ``未读``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent_core.apps.names import is_app_name
from agent_core.apps.profile import AppProfile, profile, profiles
from agent_core.errors import InputRejected
from agent_core.policies.detect import reply_task
from agent_core.texts import Lang

WORDS = ("巡检", "扫一遍", "sweep")
WATCH_WORDS = ("盯着", "值守", "watch")
EVERYBODY = frozenset(
    {"未读", "所有", "所有未读", "全部未读", "有未读的", "所有人", "全部", "unread", "everyone", "everybody", "all"}
)
MOST_NAMES = 50
SWEEP_KIND = "sweep"  # the kind of a schedule, and in a run's options
WATCH_KIND = "watch"  # the kind of a schedule
BY_WATCH = "watch"  # in a run's options: a watch has started it
QUIET_HOURS = "quiet hours"  # the message of a sweep, or a run of it, that did not begin because of them
_BETWEEN = " \t\n:：,，"  # after one of the words
_PART = re.compile(r"[\"“「『']([^\"”」』']+)[\"”」』']|([^\s,，、;；]+)")
_QUOTES = (("“", "”"), ('"', '"'), ("「", "」"), ("『", "』"))


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """The target of a sweep.

    names, tags: contacts by name and by tag; both empty for everybody who has written something new.
    app: the key of the app's profile.
    """

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    app: str = "qq"

    @property
    def everybody(self) -> bool:
        return not self.names and not self.tags

    @property
    def profile(self) -> AppProfile:
        return profile(self.app)

    def data(self) -> dict[str, object]:
        """Return the order as a run's or a schedule's options."""
        return {"kind": SWEEP_KIND, SWEEP_KIND: {"names": list(self.names), "tags": list(self.tags), "app": self.app}}

    @classmethod
    def of(cls, options: Mapping[str, object], task: str = "") -> SweepOrder:
        """Return the order from a run's options, or from its task's text if they have none."""
        kept = options.get(SWEEP_KIND)
        if not isinstance(kept, Mapping):
            return read_task(task, one=True) or cls()
        return cls(tuple(map(str, kept["names"])), tuple(map(str, kept["tags"])), str(kept["app"]))


def read_task(task: str, *, one: bool = False) -> SweepOrder | None:
    """Return the sweep that a task's text orders, or None if it is another task.

    A task is a sweep if it begins with a sweep word (``巡检 11、12``, ``/sweep #vip``), or if it asks to answer several
    contacts or everybody (``QQ回复11和12``, ``reply to everyone on WeChat``). Raises InputRejected as ``read_order``
    and ``reply_task``.

    one: an order to answer one contact counts too.
    """
    text = task.strip()
    if (whom := _after(WORDS, text.removeprefix("/"))) is not None:  # with a slash it is written as the command
        return read_order(whom)
    reply = reply_task(text)
    if reply is None or (reply.contact and not one):
        return None
    if len(reply.contacts) > MOST_NAMES:
        raise _too_many()
    return SweepOrder(reply.contacts, app=reply.profile.key)


def kind_of(task: str) -> str:
    """Return the kind of run that a schedule with this task starts: ``watch``, ``sweep`` or ``run``.

    Raises InputRejected as ``read_watch`` and ``read_task``.

    A schedule that answers one contact is a sweep, too: it checks the chat list before any model is asked, and reports
    nothing if there is nothing new.
    """
    if read_watch(task) is not None:
        return WATCH_KIND
    return "run" if read_task(task, one=True) is None else SWEEP_KIND


def read_watch(task: str) -> SweepOrder | None:
    """Return the contacts that a watch is to follow, or None if the task is not a watch (``盯着 11``, ``watch all``).

    Raises InputRejected if nobody is named, because everybody has to be asked for explicitly, and for the same reasons
    as ``read_order``.
    """
    whom = watched(task)
    if whom is None:
        return None
    order = read_order(whom)
    apps = {name.lower() for name in (order.profile.name, *order.profile.aliases)}
    if not whom or (order.everybody and whom.lower() in apps):
        raise InputRejected(
            "Who is to be watched?",
            advice="Name contacts, tags (#vip) or 所有 (all).",
            key="watch_whom",
        )
    return order


def watched(task: str) -> str | None:
    """Return whom a watch is to follow in the words of its task, or None if the task is not a watch."""
    return _after(WATCH_WORDS, task.strip())


def _after(words: Sequence[str], text: str) -> str | None:
    """Return what follows one of these words at the beginning of a text; None if it begins with none of them."""
    for word in words:
        after = text[len(word) :]
        if text[: len(word)].lower() == word and (not after or after[0] in _BETWEEN):
            return after.lstrip(_BETWEEN).strip()
    return None


def one_contact(task: str) -> str:
    """Return the contact if a task's text orders an answer to one contact and is not written as a sweep, else ""."""
    with suppress(InputRejected):
        if read_task(task) is None and (order := read_task(task, one=True)) is not None:
            return order.names[0]
    return ""


def read_order(text: str) -> SweepOrder:
    """Read names (in quotes if they contain blanks), ``#tags``, or ``未读``, which is also meant by an empty text.

    An app may come first (``微信 未读``). Raises InputRejected for too many names, or a name that no task can contain.
    """
    names: list[str] = []
    tags: list[str] = []
    app, everybody = "qq", False
    for place, found in enumerate(_PART.finditer(text)):
        quoted, plain = found[1], found[2]
        word = (quoted or plain).strip()
        if quoted is None and place == 0 and (meant := chat_app(word)):
            app = meant
        elif quoted is None and place == 0 and is_app_name(word):
            raise no_chat_app(word)
        elif quoted is None and word[0] in "#＃" and len(word) > 1:
            tags.append(word[1:])
        elif quoted is None and word.lower() in EVERYBODY:
            everybody = True
        else:
            names.append(word)
    if len(names) > MOST_NAMES:
        raise _too_many()
    if everybody and (names or tags):
        raise InputRejected(
            "Everybody with something unread, or some contacts: not both.", advice="Leave one out.", key="all_or_some"
        )
    order = SweepOrder(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(tags)), app)
    for name in order.names:
        if reply_to(name, order.profile, "zh") is None:
            raise _no_name(name)
    return order


def _no_name(name: str) -> InputRejected:
    said = f"{name!r} cannot be a contact's name."
    return InputRejected(said, advice="Write it as it stands in the app.", key="no_contact_name", name=name)


def task_of(order: SweepOrder, lang: Lang) -> str:
    """Return the task that ``read_task`` reads as this order.

    Raises InputRejected for too many names, and for a name or a tag that no task can contain.
    """
    zh = lang == "zh"
    app = order.profile.name_in(lang)
    parts = []
    for part, alone in [
        *((f"#{tag}", SweepOrder(tags=(tag,), app=order.app)) for tag in order.tags),
        *((_in_a_task(name), SweepOrder((name,), app=order.app)) for name in order.names),
    ]:
        if read_order(f"{app} {part}") != alone:
            raise _no_name((alone.names or alone.tags)[0])
        parts.append(part)
    if len(order.names) > MOST_NAMES:
        raise _too_many()
    whom = ("、" if zh else ", ").join(parts) or ("未读" if zh else "unread")
    return f"{WORDS[0] if zh else WORDS[-1]} {app} {whom}"


def _in_a_task(name: str) -> str:
    """Return a name as a task contains it: in quotes if it would be read as something else."""
    found = _PART.fullmatch(name)
    if found is not None and found[2] and name[0] not in "#＃" and name.lower() not in EVERYBODY:
        return name
    return next((f"{left}{name}{right}" for left, right in _QUOTES if not set("\"”」』'") & set(name)), name)


def _too_many() -> InputRejected:
    return InputRejected(
        f"More than {MOST_NAMES} contacts.",
        advice="Give them a tag and sweep that.",
        key="too_many_contacts",
        most=MOST_NAMES,
    )


def no_chat_app(word: str) -> InputRejected:
    known = " / ".join(p.key for p in profiles())
    return InputRejected(
        f"{word!r} is no app in which customers are answered.",
        advice=f"There are {known}; a contact of that name goes in quotes.",
        key="no_chat_app",
        name=word,
        known=known,
    )


def chat_app(word: str) -> str:
    """Return the key of the app with this name, or "" if customers are answered in no such app."""
    return next((p.key for p in profiles() if word.lower() in {n.lower() for n in (p.name, *p.aliases)}), "")


def reply_to(contact: str, app: AppProfile, lang: Lang) -> str | None:
    """Return the task that answers this contact, in people's form, or None if no text names exactly this contact.

    A name that English words would not delimit, such as one with "on" in it, is put into a Chinese task.
    """
    forms = [contact, *(f"{left}{contact}{right}" for left, right in _QUOTES)]
    english = [f"reply to contact {form} on {app.name_in('en')}" for form in forms] if lang == "en" else []
    for task in [*english, *(f"{app.name}回复联系人{form}" for form in forms)]:
        with suppress(InputRejected):
            read = reply_task(task)
            if read is not None and read.contacts == (contact,) and read.profile.key == app.key:
                return task
    return None
