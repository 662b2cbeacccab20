"""The parts of a scenario file besides the world: the task, the words of the model and of people, and the expected
result.

``EvalScenario`` is read from the same files as the virtual phone's ``Scenario``; the world is at the top level.
The module prints the JSON schema of these files, for editors and the reference: ``python -m bot.tools.eval.scenario``.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_core.ports import Provenance, ReplyState
from agent_core.session import QuestionKind, Status
from simulator.phone.apps.looks import DEFAULT_LOOKS
from simulator.phone.scenario import Scenario

Words = Annotated[str, Field(min_length=1)]
Times = Annotated[int, Field(ge=0)]
AppName = Literal["qq", "wechat", "payment", "settings"]
OpeningKind = Literal["call", "red_packet", "card", "file", "location", "video"]


class Mode(StrEnum):
    TREE = "tree"  # the tree is used if it is healthy, and pictures besides
    PICTURES = "pictures"  # no tree is requested


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class EntryPart(_Part):
    """An entry of the knowledge base."""

    question: Annotated[str, Field(min_length=1, max_length=500)]
    answer: Annotated[str, Field(min_length=1, max_length=4000)]
    aliases: list[str] = []
    """Other wordings of the question."""


class KnowledgeFaultsPart(_Part):
    """The faults of the knowledge base."""

    fail: Literal["", "unreachable", "quota", "auth", "not_found", "not_ready"] = ""
    """The error of a call that fails."""
    times: Times = 0
    """The number of calls that fail before it works; 0: all of them."""
    slow_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0
    """The duration of each call."""


class ReplyPart(_Part):
    """A reply of the model. If a real model is measured, that is asked instead."""

    call: str = ""
    """The call only: ``do(action="Back")``."""
    text: str = ""
    """Or the raw reply, as it is."""
    times: Times = 1
    """The number of times that it is said; 0, for ever, is allowed in the last reply or together with ``when``."""
    when: str = ""
    """Say it only if the newest message to the model contains this text; otherwise the next reply is tried."""
    then_demo: bool = False
    """In the last reply: the demo model continues afterwards by its rules."""

    @model_validator(mode="after")
    def _said(self) -> ReplyPart:
        if bool(self.call) == bool(self.text):
            raise ValueError("exactly one of call, text is said")
        return self

    @property
    def raw(self) -> str:
        return self.text or f"<think>…</think><answer>{self.call}</answer>"


class PersonPart(_Part):
    """A person's answer, used for the next open question of this kind."""

    on: QuestionKind
    choice: str = ""
    """The value of a choice: ``record:0``, ``skip`` …"""
    text: str = ""
    """Or their own words, read as a channel reads them.

    Words that the channel does not accept leave the question open.
    """
    by: Words = "operator"
    times: Times = 1
    """The number of questions that it answers; 0: all of this kind."""

    @model_validator(mode="after")
    def _answers(self) -> PersonPart:
        if bool(self.choice) == bool(self.text.strip()):
            raise ValueError("exactly one of choice, text is the answer")
        return self


class ChooserPart(_Part):
    """A text model that picks among the records, as scripted."""

    picks: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """The record to pick each time: 1 for the first, 0 for none. The last pick is repeated."""
    reply: str = ""
    """A text that it writes, each time, from all of ``picks``. This turns on the setting that allows it."""

    missing: str = ""
    """The part of the question that it finds unanswered, each time it checks its pick."""

    def checked(self) -> str:
        """Return its reply when it is asked about its pick."""
        return json.dumps({"missing": self.missing}, ensure_ascii=False)

    def answer(self, number: int) -> str:
        """Return its reply when it is asked to pick for the ``number``-th time, from 0."""
        if self.reply:
            return json.dumps({"pick": self.picks, "reply": self.reply}, ensure_ascii=False)
        return json.dumps({"pick": self.picks[min(number, len(self.picks) - 1)]})


class RangePart(_Part):
    min: Times = 0
    max: Times | None = None


class ExpectPart(_Part):
    """The expected result. Anything that is not named must not have happened."""

    status: Status = Status.SUCCEEDED
    """The status of the last run."""
    statuses: list[Status] | None = None
    """Or the status of each run."""
    sent: dict[str, list[str]] = {}
    """The exact texts for each contact, in order. A contact that is not named got nothing."""
    sent_contains: dict[str, list[Words]] = {}
    """Instead: one text for each entry, which contains these words."""
    not_said: list[Words] = []
    """Words that are in no text that was sent or typed."""
    provenance: list[Provenance] | None = None
    """The provenance of each reply, in order."""
    asked: list[QuestionKind] = []
    """The kinds of the questions to people, in order."""
    drafts: dict[str, str] = {}
    """The texts left in inputs at the end."""
    apps: list[AppName] = ["qq"]
    """The only apps that came to the front, besides the launcher."""
    dialogs_accepted: list[Words] = []
    """Dialogs that the run may agree to, by their words."""
    ai_entered: bool = False
    """Whether the run may enter the page of the app's own AI."""
    messages_opened: list[OpeningKind] = []
    """Kinds of messages that the run may tap though a tap on them calls, pays or opens something."""
    other_chats: list[str] = []
    """Chats that the run may open though it is not to reply to these contacts."""
    red_marks: list[Words] = []
    """Texts whose red mark the run may tap, which sends them again."""
    model_calls: RangePart = Field(default_factory=RangePart)
    message: str = ""
    """Words in the last run's outcome, or in the question that it waits with."""
    error: str = ""
    """The kind of the error that ended the last run: ``knowledge.network`` …"""
    ledger: dict[str, list[ReplyState]] = {}
    """The states of each contact's rows in the ledger, in the order in which they were made."""

    @model_validator(mode="after")
    def _once(self) -> ExpectPart:
        for contact in self.sent_contains:
            if contact in self.sent:
                raise ValueError(f"sent_contains: {contact!r} stands in sent already")
        return self


class EvalScenario(Scenario):
    """The world, and the test in it."""

    title: Annotated[str, Field(max_length=120)] = ""
    """The subject of the test, in one line; "" is the file's name."""
    task: str = ""
    """The task of the run; "" is ``QQ回复联系人11``."""
    tasks: list[Words] = Field(default_factory=list)
    """Or several runs, one after the other."""
    policy: Literal["", "reply", "careful", "open"] = ""
    """The set of policies; "": as the words of the task say."""
    only_apps: list[Words] = Field(default_factory=list)
    """The only apps that a task which is not a reply may use, as the phone shows their names; none: all."""
    known_numbers: dict[str, Annotated[str, Field(pattern=r"^\d{1,12}$")]] = Field(default_factory=dict)
    """The number of each contact that the product knows from its list of contacts."""
    lang: Literal["zh", "en"] = "zh"
    modes: list[Mode] = Field(default_factory=lambda: list(Mode), min_length=1)
    """The modes to run it in: once for each."""
    max_steps: Annotated[int, Field(ge=1, le=1000)] = 30

    knowledge: list[EntryPart] | None = None
    """The entries of the knowledge base; left out: the sample shop's. An empty list is an empty base."""
    knowledge_faults: KnowledgeFaultsPart = Field(default_factory=KnowledgeFaultsPart)
    replies: list[ReplyPart] = Field(default_factory=list)
    """The model's replies, in order; none: the demo model works by its rules."""
    people: list[PersonPart] = Field(default_factory=list)
    """The answers of people. A question without an answer here leaves its run waiting."""
    chooser: ChooserPart | None = None
    expect: ExpectPart = Field(default_factory=ExpectPart)

    @property
    def chat_apps(self) -> list[str]:
        """The chat apps that come to the front in it."""
        return [app for app in DEFAULT_LOOKS if app in self.expect.apps]

    @property
    def runs(self) -> list[str]:
        return self.tasks or [self.task or DEFAULT_TASK]

    @model_validator(mode="after")
    def _whole(self) -> EvalScenario:
        if self.task and self.tasks:
            raise ValueError("tasks: task stands there already")
        for index, reply in enumerate(self.replies[:-1]):
            if reply.then_demo:
                raise ValueError(f"replies[{index}].then_demo: only the last one hands over to the demo model")
            if reply.times == 0 and not reply.when:
                raise ValueError(f"replies[{index}].times: 0 stands in the last one, or beside when")
        expected = self.expect.statuses
        if expected is not None and len(expected) != len(self.runs):
            raise ValueError(f"expect.statuses: there are {len(self.runs)} runs")
        keys = {contact.key for contact in self.contacts}
        named = {f"expect.{name}": getattr(self.expect, name) for name in ("sent", "sent_contains", "drafts", "ledger")}
        named |= {"known_numbers": self.known_numbers, "expect.other_chats": self.expect.other_chats}
        for name, contacts in named.items():
            for contact in contacts:
                if contact not in keys:
                    raise ValueError(f"{name}: no contact {contact!r}; there are {', '.join(sorted(keys)) or 'none'}")
        return self


DEFAULT_TASK = "QQ回复联系人11"


def schema_text() -> str:
    """Return the schema as it is in the reference."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **EvalScenario.model_json_schema()}
    schema["title"] = "Scenario"
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    from bot.channels.cli.terminal.console import print_data

    print_data(schema_text().encode())
