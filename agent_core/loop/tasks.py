"""Checks a task's text and rules when they enter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_core.apps.names import names_an_app, names_one_of, packages_named
from agent_core.apps.profile import profiles
from agent_core.errors import ConfigInvalid, InputRejected
from agent_core.policies import PolicyName
from agent_core.policies.detect import app_without_replies, lacks_app
from agent_core.settings import gate_for
from agent_core.texts import Listed

# 进入 is not among them: it leads to a page as well as to an app.
_OPENED = re.compile(r"(?:打开|启动|\b(?:open|launch|start)\s+)[“\"「]?([^\s“”\"「」，,。.、；;]+)", re.IGNORECASE)
_NOT = re.compile(r"(?:不|别|勿|禁止|n['’]t|\bnot|\bnever)[要能可得准再去用许]*\s*(?:\bever\s+)?$", re.IGNORECASE)
MAX_TASK = 2000  # characters


def check_task(task: str) -> str:
    """Return the task, stripped.

    Raises InputRejected if it is empty or too long, or contains control characters or broken ones.
    """
    stripped = task.replace("\r\n", "\n").strip()
    if all(unicodedata.category(char)[0] in "ZC" for char in stripped):  # nothing visible
        advice = "Say what is to be done, for example: QQ回复联系人11"
        raise InputRejected("The task is empty.", advice=advice, key="task_empty")
    if len(stripped) > MAX_TASK:
        said = f"The task is longer than {MAX_TASK} characters."
        raise InputRejected(said, advice="Shorten it.", key="task_long", most=MAX_TASK)
    if any(unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t" for char in stripped):
        raise InputRejected("The task holds control characters.", advice="Send plain text.", key="task_control")
    return stripped


@dataclass(frozen=True, slots=True)
class TaskRules:
    """The settings of a task besides its text; stored with runs and schedules as ``data``.

    policy: "" to derive it from the text.
    apps: the only apps that the task may use; () allows all.
    """

    policy: str = ""
    apps: tuple[str, ...] = ()

    def data(self) -> dict[str, object]:
        """Return the rules as plain data, without those that are not set."""
        return {name: value for name, value in (("policy", self.policy), ("apps", list(self.apps))) if value}

    @classmethod
    def of(cls, data: Mapping[str, object]) -> TaskRules:
        """Return the rules that ``data`` of this form contains."""
        apps = data.get("apps")
        return cls(str(data.get("policy") or ""), tuple(map(str, apps)) if isinstance(apps, list | tuple) else ())


NO_RULES = TaskRules()


def check_rules(task: str, rules: TaskRules) -> TaskRules:
    """Return ``rules`` if they fit the task, else raise InputRejected with the reason."""
    if rules.policy and rules.policy not in set(PolicyName):
        raise InputRejected(
            f"There is no policy {rules.policy!r}.",
            advice=f"There are {', '.join(PolicyName)}; leave it out for the usual one.",
            key="no_policy",
            name=rules.policy,
            known=" / ".join(PolicyName),
        )
    try:
        gate = gate_for(task, PolicyName(rules.policy) if rules.policy else None)
    except ConfigInvalid as error:
        raise InputRejected(error.message, advice=error.advice, key=error.key, **error.values) from None
    if not rules.policy and not gate.enabled and (app := app_without_replies(task)):
        known = Listed(profile.known_as for profile in profiles())
        raise InputRejected(
            f"Customers are answered only in {known}, not in {app}.",
            advice="Name one of these; for another app give it a profile of your own. If it is no customer, choose the "
            "policy careful.",
            key="reply_app_unknown",
            app=app,
            known=known,
        )
    if not rules.policy and not gate.enabled and lacks_app(task) and not names_an_app(task):
        raise InputRejected(
            "The task does not say in which app the customer is to be answered.",
            advice="Name it, for example: QQ回复联系人11.",
            key="reply_where",
        )
    if gate.enabled and rules.apps:
        raise InputRejected(
            "A reply task uses its own app alone.",
            advice="Leave the apps out, or choose the policy careful.",
            key="reply_app_alone",
        )
    for app in rules.apps:
        if not packages_named(app):
            raise InputRejected(
                f"The app name {app!r} is not known, even if the app is on the phone.",
                advice="Give its package: the address of its page in an app store on the web holds it.",
                key="unknown_app",
                name=app,
            )
    _check_named(task, rules.apps)
    return rules


def _check_named(task: str, apps: Sequence[str]) -> None:
    """Raise InputRejected if the task says which apps to open and none of them is allowed."""
    allowed = {package for app in apps for package in packages_named(app)}
    if not apps or names_one_of(task, allowed):
        return
    opened = [found[1] for found in _OPENED.finditer(task) if not _NOT.search(task[: found.start()])]
    named = [name for name in opened if packages_named(name)]
    if named:
        known = " / ".join(apps)
        raise InputRejected(
            f"The task is about {named[0]!r} and may use only {known}.",
            advice="Change the task, or the apps.",
            key="other_app_named",
            name=named[0],
            known=known,
        )
