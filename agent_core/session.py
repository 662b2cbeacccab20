"""The state of a run: pure data, saved after each step, enough to continue in another process."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from agent_core.texts import LANGUAGES, Lang, say
from agent_core.texts.clean import clean_text


class Status(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    WAITING = "waiting"  # for a person, or for the knowledge base: ``Session.is_put_off``
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.STOPPED})


class QuestionKind(StrEnum):
    """The kinds of questions that a run asks a person."""

    INTERACT = "interact"  # the model asks
    TAKE_OVER = "take_over"  # a person acts on the phone and then says done
    SENSITIVE_TAP = "sensitive_tap"
    NO_SURE_ANSWER = "no_sure_answer"
    RIGHT_CHAT = "right_chat"  # is this the contact's chat?
    DELIVERY_UNKNOWN = "delivery_unknown"  # did our answer arrive?
    ANSWERED_BEFORE = "answered_before"  # the same words were answered before; is it a new question?
    FOREIGN_DRAFT = "foreign_draft"  # the input contains a draft that is not ours
    CHAT_CHANGED = "chat_changed"  # new messages arrived twice while we answered
    STUCK = "stuck"  # replies that cannot be read, or a loop
    UNREADABLE = "unreadable"  # a picture, a voice message …: its content is not guessed
    BUDGET = "budget"  # the run has used up its tokens or its cost; more?
    PERSON_ON_PHONE = "person_on_phone"  # somebody touched the screen; go on?
    FIRST_DELIVERY = "first_delivery"  # nobody has answered in this version of the app before
    REST_UNSENT = "rest_unsent"  # the chat changed between two parts of a long answer
    STILL_SEND = "still_send"  # the chat changed since a person gave the answer
    NO_SEND = "no_send"  # the answer is typed, and no control that sends it was found
    WHICH_ROW = "which_row"  # several rows have the contact's name


# For these a person's own words go to the customer as they are.
TO_CUSTOMER = frozenset({QuestionKind.NO_SURE_ANSWER, QuestionKind.UNREADABLE, QuestionKind.STILL_SEND})


NOBODY = "deadline"  # author of the answer that applies if no person answered in time
NO_REPLY = "no_reply"  # … or if whoever started the run said that nobody will answer


class Answer(BaseModel):
    """A person's answer: the value of a choice, or their own words.

    by: the person's name, NOBODY or NO_REPLY.
    program: a program or a model of this name answered, not a person.

    Invisible characters are removed from ``text``, because it may be sent.
    """

    choice: str = ""
    text: str = ""
    by: str = ""
    program: bool = False

    @field_validator("text")
    @classmethod
    def _clean(cls, text: str) -> str:
        return clean_text(text)

    @property
    def person(self) -> str:
        """The name of the person who answered; "" if a program did, or nobody in time."""
        return "" if self.program or self.by == NOBODY else self.by

    def kept(self) -> dict[str, Any]:
        """Return the answer as it is stored beside the name."""
        kept = self.model_dump(include={"choice", "text"})
        return {**kept, "program": True} if self.program else kept

    def key(self, key: str) -> str:
        """Return the text key for reporting this answer; it depends on whether a program (``by``) gave it."""
        return f"{key}_program" if self.program else key


class Choice(BaseModel):
    """One choice of a question. ``value`` is stored and compared, ``label`` is shown.

    A choice in our own words also has a text ``key``, so that each person reads it in their language.
    """

    value: str
    label: str = ""
    key: str = ""

    def in_words(self, lang: Lang) -> str:
        """Return the label for a person who reads ``lang``."""
        return say(lang, self.key) if self.key else self.label or self.value

    def means(self, said: str) -> bool:
        """Tell whether ``said``, case-folded, is the choice's text in any language, or its value."""
        own = {say(lang, self.key) for lang in LANGUAGES} if self.key else set()
        return bool(said) and said in {words.casefold() for words in (self.label, self.value, *own)}


class Question(BaseModel):
    """Something that the run asks a person. The texts around it come from the text files by ``kind``."""

    id: str
    kind: QuestionKind
    text: str = ""  # the model's or the customer's words, as data
    choices: list[Choice] = Field(default_factory=list)
    free_text: bool = False  # may be answered in free text
    data: dict[str, Any] = Field(default_factory=dict)  # contact, candidates, texts … for the card

    def accepts(self, answer: Answer) -> bool:
        """Tell whether ``answer`` is one of the choices, or free text if that is allowed."""
        if answer.choice:
            return any(choice.value == answer.choice for choice in self.choices)
        return self.free_text and bool(answer.text.strip())


# Questions about the run itself; the others are about what a customer receives.
OF_THE_RUN = frozenset(
    {
        QuestionKind.INTERACT,
        QuestionKind.TAKE_OVER,
        QuestionKind.SENSITIVE_TAP,
        QuestionKind.STUCK,
        QuestionKind.BUDGET,
        QuestionKind.PERSON_ON_PHONE,
    }
)
WAITS_ELSEWHERE = "waiting.elsewhere"  # the error kind of a run that found what ``Elsewhere`` describes


LeftTo = Literal["", "person", "run", "over"]  # "over": a run that has ended since, as views tell


class Elsewhere(BaseModel):
    """Another run that has the customer's question.

    question: what that run asks a person; None if a person parked the run, or if it ``goes_on``.
    goes_on: it waits only for the phone, and continues by itself.
    name: what people call the run.
    asked_at: when the person was asked.
    """

    run_id: str = ""
    name: str = ""
    question: Question | None = None
    asked_at: datetime | None = None
    goes_on: bool = False


class RowMark(BaseModel):
    """The features that identify the contact's row among rows of the same name. ``avatar``: a print of its picture."""

    avatar: str = ""
    preview: str = ""
    time: str = ""


class GateState(BaseModel):
    """The state of the knowledge gate; reset for each run."""

    enabled: bool = False
    app: str = "qq"
    contact: str = ""
    knowledge_done: bool = False
    pending_question: str = ""
    chat_confirmed: str = ""  # the title that a person confirmed as the contact's
    print_confirmed: str = ""  # print of that title's picture: titles that are read alike may look different
    group_confirmed: bool = False  # that chat was a group
    doubts_confirmed: list[str] = Field(default_factory=list)  # the doubts about the chat when the person confirmed it
    number: str = ""  # the contact's number, with which the app opens the chat directly
    row: RowMark | None = None  # as a person distinguished it from others of the contact's name
    row_told: bool = False  # a person said in this run which row it is
    row_entered: bool = False  # the chat was opened by that row, or by its number
    alike: list[str] = Field(default_factory=list)  # names in the list that may have been meant by ``contact``
    delivered: list[str] = Field(default_factory=list)  # by earlier runs of the same plan: must not be typed again

    def confirmed(self, title: str, title_print: str, *, group: bool = False) -> bool:
        """Tell whether a person confirmed this very title as the contact's, and if it is a group's, as a group."""
        if not self.chat_confirmed or (group and not self.group_confirmed):
            return False
        return (title, title_print) == (self.chat_confirmed, self.print_confirmed)


class AskedQuestion(BaseModel):
    """One question of a customer, which is a row of the ledger.

    words: as the customer wrote them; its kind if it cannot be read.
    whole: only the customer's own words belong to it, no quotation and no picture; otherwise a person answers.
    """

    ledger_id: int
    fingerprint: str
    words: str
    readable: bool = True
    whole: bool = True
    done: bool = False  # sent, skipped or found unanswerable
    elsewhere: bool = False  # another run has it, see ``Elsewhere``
    above: bool = False  # it is above our texts, not among the newest messages


class Cluster(BaseModel):
    """The customer's newest messages, the questions in them, and what this run has sent below them."""

    messages: list[str]
    read_by: str = ""  # the source that read them ("tree", "ocr", "model")
    ours: list[str] = Field(default_factory=list)
    asked: list[AskedQuestion] = Field(default_factory=list)
    # False until the chat was read after our newest text arrived, to find messages that the customer wrote at that
    # moment.
    looked_above: bool = True

    def arrived(self, texts: list[str]) -> None:
        """Add our texts that are now below the messages."""
        self.ours += texts
        self.looked_above = False

    @property
    def left(self) -> list[AskedQuestion]:
        """The questions that are still to be answered."""
        return [question for question in self.asked if not question.done]

    @property
    def left_readable(self) -> list[AskedQuestion]:
        return [question for question in self.left if question.readable]


class Planned(BaseModel):
    """The reply in progress: chosen, but not yet seen as delivered.

    A long text is sent in ``parts``; ``part`` is the index of the next one. [] means one part.
    """

    ledger_id: int
    fingerprint: str
    asked: str = ""  # the words that it answers
    cluster: list[str]  # the customer's newest messages, which the reply is bound to
    ours: list[str] = Field(default_factory=list)  # what was sent below them, which it is bound to as well
    read_by: str = ""  # the source that read them ("tree", "ocr", "model")
    query: str
    text: str = ""  # "" until it is chosen, by the provider's rule or by a person
    parts: list[str] = Field(default_factory=list)
    part: int = 0
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    record_questions: list[str] = Field(default_factory=list)  # of the records: people know them by these
    score: float | None = None
    person: str = ""
    send_by: Literal["", "enter"] = ""  # as a person chose, because no Send was found after typing
    given_up: Answer | None = None  # a person gave it up after it was typed: it must leave the input first

    @property
    def question(self) -> str:
        return self.asked or "\n".join(self.cluster)

    @property
    def part_text(self) -> str:
        """The text that is typed and sent next."""
        return self.parts[min(self.part, len(self.parts) - 1)] if self.parts else self.text


class ReplyRecord(BaseModel):
    """A reply that was seen to arrive. ``app`` is the profile's key."""

    contact: str
    question: str
    text: str
    app: str = ""
    query: str = ""
    provenance: str
    record_id: str = ""
    record_source: str = ""
    record_questions: list[str] = Field(default_factory=list)
    score: float | None = None
    person: str = ""
    delivered: bool = False


class KeptNote(BaseModel):
    """The model's note about a page, or a summary that it asked for.

    app: the app's name.
    step: the number of the run's step.
    """

    text: str
    app: str = ""
    step: int = 0
    summary: bool = False


class Setbacks(BaseModel):
    """Counts of events without effect: apps or dialogs that came by themselves, actions without effect, waits.

    told: how often the model was warned of each kind.
    """

    unmoved: int = 0  # actions without effect since the screen last changed
    still: int = 0  # steps since the screen last changed, whatever they did
    failed: int = 0  # steps in a row that were not ok
    steps: int = 0  # steps of the run that were counted so far
    asked: int = 0  # questions to people that were counted so far
    waits: int = 0  # in a row, on an unchanged screen
    waited: float = 0.0  # seconds of those
    moving_waits: int = 0  # in a row, on a changing screen
    moving_waited: float = 0.0
    same: int = 0  # proposals in a row that are the same action at about the same place
    last: dict[str, Any] = Field(default_factory=dict)  # the newest of those
    recent: list[tuple[str, int, int]] = Field(default_factory=list)  # the newest proposals: kind and place (0–1000)
    texts: list[str] = Field(default_factory=list)  # texts of the newest screens, as short digests
    stale: int = 0  # screens in a row that showed nothing new
    popup: str = ""  # the dialog in front
    popup_texts: str = ""  # all text of the screen with it, as a short digest
    popup_steps: int = 0  # since the screen shows exactly that
    strays: dict[str, int] = Field(default_factory=dict)  # how often each app came to the front by itself
    # Apps that the run may be in, because a person said so or its own tap led there.
    allowed: list[str] = Field(default_factory=list)
    told: dict[str, int] = Field(default_factory=dict)


class Approval(BaseModel):
    """A sensitive tap that a person allowed once, at that point, in that app and with these surroundings."""

    element: tuple[int, int] = (0, 0)
    package: str | None = None
    place: str = ""  # its surroundings, as a short digest
    until: int = 0  # it expires when the run has more steps than this


class StepVerdict(BaseModel):
    """The decision of a policy that changed the step's proposal: rewrite, block or ask.

    A policy that allows it has none.
    """

    policy: str
    decision: str
    message: str = ""


class Spent(BaseModel):
    """The total cost of the calls of models. ``cost`` is in ``currency``; None if no price is known."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0  # of tokens_in, as reported by the endpoint
    cost: float | None = None
    currency: str = ""

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class StepRecord(BaseModel):
    """One step as it happened. ``asked`` is what the model proposed, ``action`` what was done after the gate.

    The tokens are those of the model's reply and of a summary that it asked for. ``cost`` is that of every call since
    the last step, including readings of pictures and choices of a record.
    """

    index: int
    thinking: str = ""
    reply: str = ""
    ignored: str = ""  # what the model had written after its first call when the stream was closed
    asked: dict[str, Any] | None = None
    action: dict[str, Any] | None = None
    ok: bool = True
    result: str = ""
    asks: bool = False  # it asks a person, who decides what follows
    followed: str = ""  # a person's answer to a question of this step, as the model was told
    verdicts: list[StepVerdict] = Field(default_factory=list)
    package: str | None = None
    timings: dict[str, float] = Field(default_factory=dict)  # seconds by phase
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_guessed: bool = False  # the endpoint did not count them
    cost: float | None = None
    model: str = ""  # the model that answered
    form: str = ""  # form of its answers, see agent_core.model.profile
    instead_of: str = ""  # a fallback answered: the kind of error of the model that is asked first

    @property
    def unread(self) -> bool:
        """True if the model's reply could not be read. ``result`` is then written for the model."""
        return bool(self.reply or self.tokens_out) and self.asked is None and self.action is None


class Session(BaseModel):
    """The state of a run, version 1. New fields have defaults, so that a newer release can continue an older run."""

    version: Literal[1] = 1
    run_id: str
    task: str
    serial: str = ""
    lang: Lang = "zh"
    max_steps: int = 100
    max_tokens: int = 0  # a person is asked when they are used up; 0: no limit
    max_cost: float = 0.0
    allowance: int = 1  # how many times these may be used up, one more each time a person says so
    spent: Spent = Field(default_factory=Spent)
    policy: str = ""  # the name of the policies in force; "" for reply or careful, depending on the gate
    apps: list[str] = Field(default_factory=list)  # the only apps that a task that is not a reply may use; [] for all
    dry_run: bool = False
    date: str = ""  # the date when the run began, as the prompt shows it
    status: Status = Status.RUNNING
    message: str = ""
    error_kind: str = ""  # of the error that ended it, for texts and advice
    started_at: datetime | None = None
    gate: GateState = Field(default_factory=GateState)
    steps: list[StepRecord] = Field(default_factory=list)
    observation: str = ""  # what the next prompt says about the last action
    notes: list[KeptNote] = Field(default_factory=list)
    summary: str = ""  # the model's own account of what was done, if its profile has it write one
    summarised_at: int = 0  # how many steps there were when it wrote that
    cluster: Cluster | None = None  # what is being answered
    planned: Planned | None = None
    replies: list[ReplyRecord] = Field(default_factory=list)
    question: Question | None = None  # open, waiting for a person
    questions: list[Question] = Field(default_factory=list)  # all that were asked
    elsewhere: Elsewhere | None = None  # the reason why this run may not answer the customer
    answered: Answer | None = None  # the answer to ``question``, not yet applied
    approval: Approval | None = None
    draft_dropped: str = ""  # a draft that a person allowed to be cleared
    version_allowed: str = ""  # of the app, in which a person allowed this run to answer
    number_tried: bool = False  # whether opening the chat by number was tried
    send_anyway: bool = False  # a person wants the planned reply sent although the chat has changed
    answer_again: str = ""  # the fingerprint of a message that a person declared to be a new question
    parse_failures: int = 0  # in a row
    knowledge_failures: int = 0  # since the knowledge base answered last
    put_off: str = ""  # the query that waits for the knowledge base while the run rests, see ``is_put_off``
    changed_chats: int = 0  # how often the chat changed under a reply
    refusals: int = 0  # how often in a row a chosen reply could not be delivered into the chat in front
    unread_refusals: int = 0  # actions refused on unreadable pages since a page was read
    trail: list[str] = Field(default_factory=list)  # the newest pairs of screen and proposal, as short digests
    refused_finishes: int = 0  # in a row, before the knowledge base was asked
    repeats: int = 0  # how often in a row the end of the trail repeats
    setbacks: Setbacks = Field(default_factory=Setbacks)

    @property
    def half_sent(self) -> bool:
        """True if a customer has received a part of an answer whose rest is still to be sent."""
        return self.planned is not None and self.planned.part > 0

    @property
    def new_cost(self) -> float | None:
        """The cost since the last recorded step; None if no price is known."""
        if self.spent.cost is None:
            return None
        return max(0.0, self.spent.cost - sum(step.cost or 0.0 for step in self.steps))

    @property
    def is_put_off(self) -> bool:
        """True if the run rests until the knowledge base can be asked. It waits for no person and resumes by itself."""
        return self.status is Status.WAITING and self.question is None and bool(self.put_off)

    @property
    def comes_to(self) -> Status:
        """The status for whoever waits for the run.

        It is WAITING, too, if a person must answer another run first, or if nothing was sent because another run has
        yet to answer the customer.
        """
        return Status.WAITING if self.status in FINAL and self.left_to else self.status

    @property
    def left_to(self) -> LeftTo:
        """The run or person that this run left its customer to: an older run, or the person that it waits for; "" for
        none.

        The run does not wait for the rest of the questions if something was sent and the older run continues by itself.
        """
        if self.elsewhere is None:
            return ""
        if not self.elsewhere.goes_on:
            return "person"
        return "" if any(reply.delivered for reply in self.replies) else "run"

    def end(self, status: Status, message: str) -> None:
        """Set the outcome of the run."""
        self.status, self.message = status, message
