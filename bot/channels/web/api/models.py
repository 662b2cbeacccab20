"""The forms of what the API takes and gives. They are read from the desk's views, and name only what stays.

Times are ISO 8601 with their offset. An empty text stands for *none*.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasPath, Base64Bytes, BaseModel, ConfigDict, Field

from agent_core.actions.types import Back, DoubleTap, Home, LongPress, PressKey, Swipe, Tap, Type
from bot.desk.regular_times import WEEK, RegularTimes
from bot.desk.views import RunStatus

MOST_LISTED = 100


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("The character U+0000 is not allowed.")
    return text


Text = Annotated[str, AfterValidator(_no_nul), Field(max_length=10_000)]
Line = Annotated[str, AfterValidator(_no_nul), Field(max_length=500)]
Lines = Annotated[list[Line], Field(max_length=100)]
ClockTime = Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9])?$", examples=["09:00"])]


class Wish(BaseModel):
    """Base of what a client sends: a field that nobody knows is an error, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Shown(BaseModel):
    """Base of what is answered: read from a view of the desk by its names."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=False)

    @classmethod
    def of(cls, view: object) -> Self:
        return cls.model_validate(view)


class Paged(Wish):
    """A page of a list."""

    cursor: Annotated[str, Field(pattern=r"^([0-9]{1,15})?$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20


# Runs -----------------------------------------------------------------------------------------------------------------


class ApiNewRun(Wish):
    """A task in plain words. ``device``: a serial or a name. ``policy``, ``apps``: as in ``phonedesk run``."""

    task: Annotated[Text, Field(min_length=1, examples=["QQ回复联系人11"])]
    device: Line = ""
    policy: Line = ""
    apps: Lines = []


class ApiRunsQuery(Paged):
    """``since``, ``until``: `7d`, `12h`, `today`, `2026-11-01` or `2026-11-01 18:30`."""

    words: Line = ""
    contact: Line = ""
    status: RunStatus | Literal[""] = ""
    since: Line = ""
    until: Line = ""


class ApiUsed(Shown):
    """What the calls of models cost. ``cost`` is null if no price is known."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    currency: str


class ApiSwept(Shown):
    """A contact of a sweep."""

    contact: str
    state: str
    texts: list[str]
    message: str
    run: str = Field(validation_alias="run_id")


class ApiAnswered(Shown):
    """A customer's question and what became of it.

    state: as in the ledger. standing: the state that people are shown. provenance: where the text came from.
    rating: 1, -1 or 0.
    """

    id: str
    run: str = Field(validation_alias="run_id")
    device: str = Field(validation_alias="serial")
    app: str
    contact: str
    question: str
    sent: str
    state: str
    standing: str
    provenance: str
    source: str = Field(validation_alias="record_source")
    score: float | None
    person: str
    rating: int
    rated_by: str
    asked_at: datetime
    changed_at: datetime
    question_id: str
    before: bool = Field(description="Whether there is a picture of the screen before.")
    after: bool = Field(description="Whether there is a picture of the screen after.")


class ApiRun(Shown):
    """A run, a sweep, or a plan.

    position: the place in the phone's queue, 0 if it is not queued. parent: the sweep or plan that it belongs to.
    """

    id: str
    task: str
    status: RunStatus
    device: str = Field(validation_alias="serial")
    device_name: str = Field(validation_alias="phone")
    by: str
    schedule: str = Field(validation_alias="schedule_id")
    steps: int
    max_steps: int
    message: str
    error: str = Field(validation_alias="error_kind")
    position: int
    held: bool
    stopped_by: str
    parent: str
    again_at: datetime | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    spent: ApiUsed
    answers: list[ApiAnswered]
    contacts: list[ApiSwept] | None = Field(None, validation_alias=AliasPath("sweep", "contacts"))


class ApiPastRun(Shown):
    """A run in a list. ``number`` is its number for people; it never changes."""

    number: int
    id: str
    task: str
    status: RunStatus
    device_name: str = Field(validation_alias="phone")
    by: str
    schedule: str = Field(validation_alias="schedule_id")
    message: str
    held: bool
    at: datetime
    seconds: float | None


class ApiRunPage(Shown):
    """A page of runs, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiPastRun]
    total: int
    next: str


class ApiStep(Shown):
    """A step: what the model thought and proposed (``asked``), and what was done after the gate (``action``)."""

    index: int
    thinking: str
    asked: dict[str, Any] | None
    action: dict[str, Any] | None
    ok: bool
    result: str
    package: str | None
    timings: dict[str, float]
    model: str
    tokens_in: int
    tokens_out: int


class ApiSteps(Shown):
    items: list[ApiStep]


# Questions ------------------------------------------------------------------------------------------------------------


class ApiQuestionChoice(Shown):
    value: str
    label: str


class ApiQuestion(Shown):
    """Something that a run asks a person. ``then``: what happens at the deadline. ``answer``: a choice, or words."""

    id: str
    run: str = Field(validation_alias="run_id")
    device: str = Field(validation_alias="serial")
    kind: str = Field(validation_alias=AliasPath("question", "kind"))
    text: str = Field(validation_alias=AliasPath("question", "text"))
    choices: list[ApiQuestionChoice] = Field(validation_alias=AliasPath("question", "choices"))
    free_text: bool = Field(validation_alias=AliasPath("question", "free_text"))
    data: dict[str, Any] = Field(validation_alias=AliasPath("question", "data"))
    open: bool
    answer: str
    by: str
    then: str
    deadline: datetime | None
    asked_at: datetime | None
    answered_at: datetime | None


class ApiQuestions(Shown):
    items: list[ApiQuestion]


class ApiNewAnswer(Wish):
    """One of the choices by its value, or words if the question takes them."""

    choice: Line = ""
    text: Text = ""


class ApiOutcome(Shown):
    """An answer that was taken."""

    answer: str
    by: str


# The answer log -------------------------------------------------------------------------------------------------------


class ApiAnswersQuery(Paged):
    """``words``: a contact by the whole name, else words of question or answer. ``since``, ``until``: as for runs."""

    words: Line = ""
    contact: Line = ""
    text: Line = ""
    since: Line = ""
    until: Line = ""
    state: Line = ""
    rating: Annotated[int, Field(ge=-1, le=1)] | None = None
    provenance: Line = ""
    unanswered: bool = False
    app: Line = ""
    device: Line = ""
    run: Line = ""


class ApiAnswerPage(Shown):
    """A page of answers, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiAnswered]
    total: int
    next: str


class ApiNewRating(Wish):
    """1, -1, or 0 for none."""

    rating: Annotated[int, Field(ge=-1, le=1)]


class ApiUnanswered(Shown):
    """A question that the knowledge base had no answer to, with those that say the same.

    entry: the knowledge entry that has it by now.
    """

    answer_id: str
    example: str
    count: int
    newest: datetime
    contacts: list[str]
    answer: str
    entry: str
    entry_live: bool


class ApiUnansweredList(Shown):
    items: list[ApiUnanswered]


class ApiSince(Wish):
    since: Line = ""


# Statistics -----------------------------------------------------------------------------------------------------------


class ApiStatisticsQuery(Wish):
    days: Annotated[int, Field(ge=7, le=90, description="7, 30 or 90.")] = 7


class ApiDayFigures(Shown):
    """A day, from ``at`` on.

    alone, by_person: customers' questions that were answered without and by a person. left: those without an answer.
    median_seconds: from reading a question to its answer; null if none was answered.
    calls, tokens_in, tokens_out, cost: of models; the cost is null if no price is known.
    """

    at: datetime = Field(validation_alias=AliasPath("bar", "at"))
    alone: int = Field(validation_alias=AliasPath("bar", "alone"))
    by_person: int = Field(validation_alias=AliasPath("bar", "by_person"))
    left: int = Field(validation_alias=AliasPath("bar", "left"))
    median_seconds: float | None
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class ApiFailures(Shown):
    """How many runs failed with a kind of error; "" for none of its own."""

    kind: str
    count: int


class ApiStatistics(Shown):
    """The days, the oldest first, and the failures in all of them, the most frequent first.

    kept_since: what models used and what failed before this time is no longer known; null if all is.
    """

    days: list[ApiDayFigures]
    failures: list[ApiFailures]
    currency: str
    kept_since: datetime | None


# Schedules ------------------------------------------------------------------------------------------------------------


class ApiNewSchedule(Wish):
    """``expression``: the times in plain words or as cron; "" for a watch, whose task says whom it follows."""

    expression: Line = ""
    task: Annotated[Text, Field(min_length=1)]
    device: Line | None = None
    policy: Line = ""
    apps: Lines = []
    timezone: Line | None = None
    missed: Literal["skip", "catch_up"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    quiet: Line | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None


class ApiScheduleChange(Wish):
    """What is left out stays as it is. ``device``: "" for any."""

    expression: Line | None = None
    task: Annotated[Text, Field(min_length=1)] | None = None
    device: Line | None = None
    timezone: Line | None = None
    missed: Literal["skip", "catch_up"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    quiet: Line | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None


class ApiTimes(Wish):
    """Times: ``expression`` in plain words or as cron, or regular ones.

    every: minutes between two. start, end: the hours of the day, both "" for all of it. days: of the week, Monday is 1.
    """

    expression: Line = ""
    every: Annotated[int, Field(ge=1, le=720)] | None = None
    start: ClockTime = ""
    end: ClockTime = ""
    days: Annotated[list[Annotated[int, Field(ge=1, le=7)]], Field(max_length=7)] = list(WEEK)

    def written(self) -> str:
        """Return the times as an expression."""
        if self.every is None:
            return self.expression
        return RegularTimes(self.every, self.start, self.end, tuple(self.days)).expression


class ApiNextTimes(Shown):
    """The next three."""

    next_times: list[datetime]


class ApiNewSweep(ApiTimes):
    """A sweep at certain times: of everybody who has unread messages, or of chosen contacts, by name and by tag."""

    app: Line = "qq"
    whom: Literal["unread", "chosen"]
    contacts: Lines = []
    tags: Lines = []
    device: Line | None = None
    quiet: Line | None = None


class ApiSweepOrder(Shown):
    """Whom a sweep answers: contacts by name and by tag, or everybody who has unread messages."""

    app: str
    everybody: bool
    contacts: list[str] = Field(validation_alias="names")
    tags: list[str]


class ApiTick(Shown):
    """The newest tick of a schedule, and its run."""

    what: str
    at: datetime
    run: str = Field(validation_alias="run_id")
    status: RunStatus | None
    message: str


class ApiSchedule(Shown):
    """A schedule or a watch. ``means``: the stored form of ``expression``. ``sweep``: null if it starts none."""

    id: str
    kind: str
    expression: str
    means: str
    task: str
    sweep: ApiSweepOrder | None
    device: str = Field(validation_alias="serial")
    device_name: str = Field(validation_alias="phone")
    timezone: str
    paused: bool
    next_times: list[datetime]
    missed: str
    overlap: str
    quiet: str
    jitter_seconds: int
    started: int
    skipped_busy: int
    skipped_missed: int
    skipped_quiet: int
    last: ApiTick | None


class ApiSchedules(Shown):
    items: list[ApiSchedule]


# Phones ---------------------------------------------------------------------------------------------------------------


class ApiDevice(Shown):
    """A phone. ``state``: free, busy, offline, unauthorized, or away (its host is not heard). ``run``: which has it."""

    serial: str
    name: str
    state: str
    run: str = Field(validation_alias="run_id")
    host: str
    since: datetime | None
    tags: list[str]


class ApiDevices(Shown):
    items: list[ApiDevice]


class ApiAct(Wish):
    action: Annotated[Tap | DoubleTap | LongPress | Swipe | Type | Back | Home | PressKey, Field(discriminator="kind")]


class ApiTaken(Shown):
    """``taken``: you have the phone."""

    serial: str
    taken: bool


class ApiScreenQuery(Wish):
    full: bool = Field(False, description="In the phone's own size.")


class ApiStatus(Shown):
    """What is going on now."""

    devices: list[ApiDevice] = Field(validation_alias="phones")
    runs: list[ApiRun]
    questions: list[ApiQuestion]


# Contacts -------------------------------------------------------------------------------------------------------------


class ApiContactsQuery(Wish):
    app: Line = ""
    text: Line = ""
    tag: Line = ""


class ApiContact(Shown):
    app: str
    name: str
    device: str = Field(validation_alias="serial")
    number: str
    tags: list[str]
    note: str


class ApiContacts(Shown):
    items: list[ApiContact]


class ApiNewContact(Wish):
    """``device``: the serial of the phone that knows this contact; "" for all."""

    app: Line = "qq"
    name: Annotated[Line, Field(min_length=1)]
    device: Line = ""
    number: Line = ""
    tags: Lines = []
    note: Line = ""


class ApiContactChange(Wish):
    """What is left out stays as it is."""

    name: Annotated[Line, Field(min_length=1)] | None = None
    number: Line | None = None
    tags: Lines | None = None
    note: Line | None = None


class ApiOfDevice(Wish):
    device: Line = ""


# The knowledge base ---------------------------------------------------------------------------------------------------


class ApiEntry(Shown):
    """A question and its answer, word for word. ``live``: approved; others are never sent."""

    id: str
    question: str
    answer: str
    aliases: list[str]
    tags: list[str]
    live: bool
    origin: str
    alias_of: str
    created_at: datetime
    updated_at: datetime


class ApiEntries(Shown):
    items: list[ApiEntry]


class ApiFoundEntry(Shown):
    """``score``: the share of the query's words in the entry, 0–1."""

    entry: ApiEntry
    score: float


class ApiFoundEntries(Shown):
    items: list[ApiFoundEntry]


class ApiSearchQuery(Wish):
    words: Annotated[Line, Field(min_length=1)]


class ApiNewEntry(Wish):
    question: Annotated[Text, Field(min_length=1)]
    answer: Annotated[Text, Field(min_length=1)]
    aliases: Lines = []
    tags: Lines = []


class ApiEntryChange(Wish):
    """What is left out stays as it is."""

    question: Annotated[Text, Field(min_length=1)] | None = None
    answer: Annotated[Text, Field(min_length=1)] | None = None
    aliases: Lines | None = None
    tags: Lines | None = None


class ApiNewImport(Wish):
    """A table of questions and answers: .csv, .xlsx, .jsonl, .json, .md, .docx or .zip.

    content: the file in base64. mark: of the plan that was shown; "" to see the plan, and change nothing.
    replace_doubles: a row takes a wording that something else has, too.
    """

    name: Annotated[Line, Field(min_length=1)]
    content: Annotated[Base64Bytes, Field(min_length=1, max_length=2_000_000)]
    mark: Line = ""
    replace_doubles: bool = False


class ApiImported(Shown):
    """What an import would do, or did (``done``). ``summary``: all of it in words, a line each."""

    done: bool
    mark: str
    added: int
    changed: int
    same: int
    doubles: int
    unclear: int
    refused: int
    summary: list[str]


class ApiKnowledgeFigures(Shown):
    """``used``: the shop's own entries are among the knowledge bases that answer customers (``provider``)."""

    live: int = Field(validation_alias=AliasPath("entries", "live"))
    pending: int = Field(validation_alias=AliasPath("entries", "pending"))
    provider: str
    used: bool


# Events ---------------------------------------------------------------------------------------------------------------


class ApiEventsQuery(Wish):
    """``after``: the id of an event, for clients that cannot send ``Last-Event-ID``."""

    after: Annotated[int, Field(ge=0, le=2**62)] | None = None


class ApiEvent(Shown):
    """A row of the event log. ``data`` depends on ``kind``. ``picture``: whether there is one."""

    id: int
    run: str = Field(validation_alias="run_id")
    kind: str
    data: Mapping[str, Any]
    picture: bool = Field(validation_alias="pictured")
    at: datetime | None = Field(validation_alias="created_at")


# Keys -----------------------------------------------------------------------------------------------------------------


class ApiNewKey(Wish):
    """``role``: viewer, operator or owner. ``devices``: the only phones that it may use; none for all."""

    name: Annotated[Line, Field(min_length=1, max_length=64)]
    role: Literal["viewer", "operator", "owner"] = "viewer"
    devices: Lines = []


class ApiKeyShown(Shown):
    """An API key, without its secret."""

    name: str
    role: str
    devices: list[str] | None = Field(validation_alias="serials")
    created_at: datetime
    last_used_at: datetime | None


class ApiKeyList(Shown):
    items: list[ApiKeyShown]


class ApiSecret(Shown):
    """A key that was just made. It is shown this once."""

    key: str
    name: str


class ApiRemoved(Shown):
    """``stopped``: how many of its runs were stopped."""

    name: str
    stopped: int


# People ---------------------------------------------------------------------------------------------------------------


class ApiPerson(Shown):
    """A paired person. ``devices``: the serials of the only phones that they may use; none for all."""

    id: str
    name: str
    role: str
    lang: str
    user: str = Field(validation_alias="user_id", description="Their id in Telegram, or empty.")
    since: datetime
    seen: datetime | None
    devices: list[str] = Field(validation_alias="phones")
    chats: list[str]


class ApiPeople(Shown):
    items: list[ApiPerson]


class ApiPersonChange(Wish):
    """What is left out stays as it is. ``devices``: none lifts the limit."""

    role: Literal["viewer", "operator", "owner"] | None = None
    devices: Lines | None = None


class ApiNewInvitation(Wish):
    """``hours``: how long the code can be used. ``name``: who is invited to the console; "" for Telegram."""

    role: Literal["viewer", "operator", "owner"] = "operator"
    hours: Annotated[float, Field(gt=0, le=720)] = 24
    name: Annotated[str, Field(max_length=64)] = ""
    devices: Lines = []


class ApiInvitation(Shown):
    """An invitation. ``code``: "" except when it was just made. ``link``: the console's, if it is for the console.

    name: who is invited to the console; "" for somebody who sends the code to the bot.
    """

    id: str
    name: str
    role: str
    by: str
    created_at: datetime
    expires_at: datetime
    code: str
    link: str
    devices: list[str] = Field(validation_alias="phones")


class ApiConsoleLink(Shown):
    """A link that logs a person in to the console once, within a day. It is shown this once."""

    link: str
    name: str


class ApiInvitations(Shown):
    items: list[ApiInvitation]


class ApiAuditRow(Shown):
    """What somebody did, or was refused. ``detail`` depends on ``command``."""

    id: int
    at: datetime
    who: str
    channel: str
    command: str
    detail: Mapping[str, Any]
    allowed: bool


class ApiAuditPage(Shown):
    """A page of the audit log, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiAuditRow]
    next: str


class ApiSettingPlace(Shown):
    """``source``: where a setting is set. ``where``: the variable, or the file and line."""

    source: str = Field(validation_alias="layer")
    where: str


class ApiSetting(Shown):
    """A setting. ``value``: dots for a secret. ``places``: each that names it, the one that wins first."""

    name: str = Field(validation_alias=AliasPath("name", "key"))
    environment: str = Field(validation_alias=AliasPath("name", "environment"))
    value: Any
    places: list[ApiSettingPlace]
    changed: bool


class ApiSettings(Shown):
    items: list[ApiSetting]
