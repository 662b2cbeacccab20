"""The state of a run: pure data, saved after each step, enough to go on in another process."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from agent_core.texts import LANGUAGES, Lang, say
from agent_core.texts.clean import clean_text


class Status(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"  # for a person, or for the knowledge base: ``Session.is_put_off``
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.STOPPED})


class QuestionKind(StrEnum):
    INTERACT = "interact"  # the model asks
    TAKE_OVER = "take_over"  # a person acts on the phone, then says done
    SENSITIVE_TAP = "sensitive_tap"
    NO_SURE_ANSWER = "no_sure_answer"
    RIGHT_CHAT = "right_chat"  # is this the contact's chat?
    DELIVERY_UNKNOWN = "delivery_unknown"  # did our answer arrive?
    ANSWERED_BEFORE = "answered_before"  # the same words were answered; is it a new question?
    FOREIGN_DRAFT = "foreign_draft"  # a draft that is not ours stands in the input
    CHAT_CHANGED = "chat_changed"  # new messages came in twice while we answered
    STUCK = "stuck"  # replies that cannot be read, or a loop
    UNREADABLE = "unreadable"  # a picture, a voice message …: what it says is not guessed
    BUDGET = "budget"  # the run has used up its tokens or its cost; more?
    PERSON_ON_PHONE = "person_on_phone"  # somebody touched the screen; go on?
    FIRST_DELIVERY = "first_delivery"  # this version of the app was never answered in
    REST_UNSENT = "rest_unsent"  # the chat changed between two parts of a long answer
    STILL_SEND = "still_send"  # the chat changed since a person gave the answer
    NO_SEND = "no_send"  # the answer stands typed, and nothing is seen that sends it
    WHICH_ROW = "which_row"  # several rows have the contact's name


# A person's own words go to the customer as they are.
TO_CUSTOMER = frozenset({QuestionKind.NO_SURE_ANSWER, QuestionKind.UNREADABLE, QuestionKind.STILL_SEND})


NOBODY = "deadline"  # who gave the answer that counts where no person did in time
NO_REPLY = "no_reply"  # … and where whoever began the run said that nobody is going to


class Answer(BaseModel):
    """A person's answer: the value of a choice, or their own words. ``by``: their name, NOBODY or NO_REPLY.

    ``program``: no person gave it, but a program or a model of this name. What nobody sees is left out of ``text``: it
    may be sent.
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
        """The name of the person who gave it; "" if a program did, or nobody in time."""
        return "" if self.program or self.by == NOBODY else self.by

    def kept(self) -> dict[str, Any]:
        """As it is stored beside the name."""
        kept = self.model_dump(include={"choice", "text"})
        return {**kept, "program": True} if self.program else kept

    def key(self, key: str) -> str:
        """The key of the text that tells of it, which says whether a person answered; ``by`` belongs in it."""
        return f"{key}_program" if self.program else key


class Choice(BaseModel):
    """``value`` is stored and compared, ``label`` is shown. One in our own words has a text ``key``, too, so that each
    person reads it in their language.
    """

    value: str
    label: str = ""
    key: str = ""

    def in_words(self, lang: Lang) -> str:
        """Return what is shown to a person who reads ``lang``."""
        return say(lang, self.key) if self.key else self.label or self.value

    def means(self, said: str) -> bool:
        """Tell whether ``said``, case-folded, are its words in any language, or its value."""
        own = {say(lang, self.key) for lang in LANGUAGES} if self.key else set()
        return bool(said) and said in {words.casefold() for words in (self.label, self.value, *own)}


class Question(BaseModel):
    """Something the run asks a person. The texts around it come from the text files by ``kind``."""

    id: str
    kind: QuestionKind
    text: str = ""  # the model's or the customer's words, as data
    choices: list[Choice] = Field(default_factory=list)
    free_text: bool = False  # may be answered in one's own words
    data: dict[str, Any] = Field(default_factory=dict)  # contact, candidates, texts … for the card

    def accepts(self, answer: Answer) -> bool:
        """Is this one of the choices, or own words where they are allowed?"""
        if answer.choice:
            return any(choice.value == answer.choice for choice in self.choices)
        return self.free_text and bool(answer.text.strip())


# What a run asks about its own going on; the others are about what a customer gets.
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
WAITS_ELSEWHERE = "waiting.elsewhere"  # the error kind of a run that found what ``Elsewhere`` says


LeftTo = Literal["", "person", "run"]


class Elsewhere(BaseModel):
    """Another run has the customer's question and waits for a person: with ``question``, or parked by one (None).

    ``goes_on``: or it waits for nobody but the phone, and goes on by itself. ``name``: what people call the run.
    ``asked_at``: when the person was asked.
    """

    run_id: str = ""
    name: str = ""
    question: Question | None = None
    asked_at: datetime | None = None
    goes_on: bool = False


class RowMark(BaseModel):
    """What the contact's row is known by, among rows of the same name. ``avatar``: a print of its picture."""

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
    print_confirmed: str = ""  # of its picture: two titles that are read alike may look different
    group_confirmed: bool = False  # it was a group's
    doubts_confirmed: list[str] = Field(default_factory=list)  # what was doubtful of the chat when they did
    number: str = ""  # the contact's number, by which the app opens the chat directly
    row: RowMark | None = None  # as a person told it from others of the contact's name
    row_told: bool = False  # a person said in this run which row it is
    row_entered: bool = False  # the chat was opened by that row, or by its number
    delivered: list[str] = Field(default_factory=list)  # by earlier runs of the same plan: not to be typed again

    def confirmed(self, title: str, title_print: str, *, group: bool = False) -> bool:
        """Whether a person has said of this very title that it is the contact's; of a group's, that a group is."""
        if not self.chat_confirmed or (group and not self.group_confirmed):
            return False
        return (title, title_print) == (self.chat_confirmed, self.print_confirmed)


class AskedQuestion(BaseModel):
    """One question of a customer: a row of the ledger. ``words``: as they wrote it; what cannot be read, its kind.

    ``whole``: nothing but their own words belongs to it, no quote and no picture; else a person answers.
    """

    ledger_id: int
    fingerprint: str
    words: str
    readable: bool = True
    whole: bool = True
    done: bool = False  # sent, skipped or found unanswerable
    elsewhere: bool = False  # another run has it, see ``Elsewhere``
    above: bool = False  # it stands above what this run has sent, not among the newest messages


class Cluster(BaseModel):
    """The customer's newest messages, what is asked in them, and what this run has sent below them."""

    messages: list[str]
    read_by: str = ""  # the source that read them ("tree", "ocr", "model")
    ours: list[str] = Field(default_factory=list)
    asked: list[AskedQuestion] = Field(default_factory=list)
    # Whether the chat was looked at since our newest text arrived, for what the customer wrote in that very moment.
    looked_above: bool = True

    def arrived(self, texts: list[str]) -> None:
        """Ours stand below the messages now."""
        self.ours += texts
        self.looked_above = False

    @property
    def left(self) -> list[AskedQuestion]:
        """What is still to be answered."""
        return [question for question in self.asked if not question.done]

    @property
    def left_readable(self) -> list[AskedQuestion]:
        return [question for question in self.left if question.readable]


class Planned(BaseModel):
    """The reply that is under way: chosen, not yet seen as delivered.

    A long text goes out in ``parts``; ``part`` is the index of the next one. () is one part.
    """

    ledger_id: int
    fingerprint: str
    asked: str = ""  # the words that it answers
    cluster: list[str]  # the customer's newest messages, as the reply is bound to them
    ours: list[str] = Field(default_factory=list)  # what was sent below them, as it is bound to that, too
    read_by: str = ""  # the source that read them ("tree", "ocr", "model")
    query: str
    text: str = ""  # "" until it is chosen, by the provider's rule or by a person
    parts: list[str] = Field(default_factory=list)
    part: int = 0
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    record_questions: list[str] = Field(default_factory=list)  # of the records: what a person knows them by
    score: float | None = None
    person: str = ""
    send_by: Literal["", "enter"] = ""  # as a person chose, since no Send was seen after typing
    given_up: Answer | None = None  # a person gave it up after it was typed: it has to leave the input first

    @property
    def question(self) -> str:
        return self.asked or "\n".join(self.cluster)

    @property
    def part_text(self) -> str:
        """What is typed and sent next."""
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
    """What the model kept of a page, or a summary that it asked for. ``app``: its name; ``step``: of the run."""

    text: str
    app: str = ""
    step: int = 0
    summary: bool = False


class Setbacks(BaseModel):
    """What has gone nowhere, and how often: an app or a dialog that came by itself, acts without effect, waiting.

    ``told``: how often each kind was called out to the model.
    """

    unmoved: int = 0  # acts since the screen changed, after which it was the same
    still: int = 0  # steps since the screen changed, whatever was done in them
    failed: int = 0  # steps in a row that were not ok
    steps: int = 0  # of the run, that were looked at so far
    asked: int = 0  # questions to people, likewise
    waits: int = 0  # in a row, on a screen that stayed the same
    waited: float = 0.0  # seconds of those
    moving_waits: int = 0  # in a row, on one that changed
    moving_waited: float = 0.0
    same: int = 0  # proposals in a row that are the same act, at about the same place
    last: dict[str, Any] = Field(default_factory=dict)  # the newest of those
    recent: list[tuple[str, int, int]] = Field(default_factory=list)  # the newest proposals: kind and place (0–1000)
    texts: list[str] = Field(default_factory=list)  # what the newest screens said, as short digests
    stale: int = 0  # screens in a row that said nothing new
    popup: str = ""  # the dialog in front
    popup_texts: str = ""  # all that the screen says with it, as a short digest
    popup_steps: int = 0  # since it says just that
    strays: dict[str, int] = Field(default_factory=dict)  # how often each app came to the front by itself
    allowed: list[str] = Field(default_factory=list)  # apps that the run may be in: a person said so, or its own tap
    told: dict[str, int] = Field(default_factory=dict)


class Approval(BaseModel):
    """A sensitive tap that a person allowed, once: there, in that app, while that stands around it."""

    element: tuple[int, int] = (0, 0)
    package: str | None = None
    place: str = ""  # what stood around it, as a short digest
    until: int = 0  # it has lapsed once the run has more steps than that


class StepVerdict(BaseModel):
    """What a policy made of the step's proposal: rewrite, block or ask. What all allow has none."""

    policy: str
    decision: str
    message: str = ""


class Spent(BaseModel):
    """What the calls of models came to. ``cost`` in ``currency``; None where no price is known."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0  # of tokens_in, as far as the endpoint says
    cost: float | None = None
    currency: str = ""

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class StepRecord(BaseModel):
    """One step as it happened. ``asked`` is what the model proposed, ``action`` what was done after the gate.

    The tokens are those of the model's reply, and of a summary that it asked for; ``cost`` is of every call since the
    last step, pictures that were read and choices of a record among them.
    """

    index: int
    thinking: str = ""
    reply: str = ""
    ignored: str = ""  # what the model had said after its first call when the stream was closed
    asked: dict[str, Any] | None = None
    action: dict[str, Any] | None = None
    ok: bool = True
    result: str = ""
    asks: bool = False  # a person is asked by it, who decides what comes of it
    followed: str = ""  # what a person answered to a question of this step, as the model was told
    verdicts: list[StepVerdict] = Field(default_factory=list)
    package: str | None = None
    timings: dict[str, float] = Field(default_factory=dict)  # seconds by phase
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_guessed: bool = False  # the endpoint did not count them
    cost: float | None = None
    model: str = ""  # the one that answered
    form: str = ""  # of its answers, see agent_core.model.profile
    instead_of: str = ""  # it is a fallback: the kind of error of the model that is asked first

    @property
    def unread(self) -> bool:
        """Whether the model replied, and that could not be read: ``result`` is written for the model then."""
        return bool(self.reply or self.tokens_out) and self.asked is None and self.action is None


class Session(BaseModel):
    """Version 1. New fields have defaults, so that an older run is taken up by a newer release."""

    version: Literal[1] = 1
    run_id: str
    task: str
    serial: str = ""
    lang: Literal["zh", "en"] = "zh"
    max_steps: int = 100
    max_tokens: int = 0  # then a person is asked; 0: no limit
    max_cost: float = 0.0
    allowance: int = 1  # how often these may be used up, one more each time a person says so
    spent: Spent = Field(default_factory=Spent)
    policy: str = ""  # the name of the policies that hold; "": reply or careful, as the gate is
    apps: list[str] = Field(default_factory=list)  # the only apps that a task which is no reply may use; [] for all
    dry_run: bool = False
    date: str = ""  # today's date where the run began, as the prompt shows it
    status: Status = Status.RUNNING
    message: str = ""
    error_kind: str = ""  # of the error that ended it, for the texts and the advice
    started_at: datetime | None = None
    gate: GateState = Field(default_factory=GateState)
    steps: list[StepRecord] = Field(default_factory=list)
    observation: str = ""  # what the next prompt says about the last action
    notes: list[KeptNote] = Field(default_factory=list)
    summary: str = ""  # the model's own account of what was done, where its profile has it write one
    summarised_at: int = 0  # how many steps there were when it wrote that
    cluster: Cluster | None = None  # what is being answered
    planned: Planned | None = None
    replies: list[ReplyRecord] = Field(default_factory=list)
    question: Question | None = None  # open, waiting for a person
    questions: list[Question] = Field(default_factory=list)  # all that were asked
    elsewhere: Elsewhere | None = None  # what keeps this run from answering the customer
    answered: Answer | None = None  # the answer to ``question``, not yet taken up
    approval: Approval | None = None
    draft_dropped: str = ""  # a draft that a person allowed to be cleared
    version_allowed: str = ""  # of the app, in which a person allowed this run to answer
    number_tried: bool = False  # to open the chat by it
    send_anyway: bool = False  # a person wants what is planned sent, though the chat has changed
    answer_again: str = ""  # the fingerprint that a person declared to be a new question
    parse_failures: int = 0  # in a row
    knowledge_failures: int = 0  # since the knowledge base answered last
    put_off: str = ""  # the query that it could not be asked while the run rests, see ``is_put_off``
    changed_chats: int = 0  # how often the chat changed under a reply
    refusals: int = 0  # how often in a row a chosen reply could not be delivered into the chat in front
    unread_refusals: int = 0  # acts that were refused on pages that nothing could read, since one was read
    trail: list[str] = Field(default_factory=list)  # the newest pairs of screen and proposal, as short digests
    refused_finishes: int = 0  # in a row, before the knowledge base was asked
    repeats: int = 0  # how often the end of the trail stands there in a row
    setbacks: Setbacks = Field(default_factory=Setbacks)

    @property
    def half_sent(self) -> bool:
        """Whether a customer has a part of an answer, of which the rest is still to be sent."""
        return self.planned is not None and self.planned.part > 0

    @property
    def new_cost(self) -> float | None:
        """What was spent since the last step was written down."""
        if self.spent.cost is None:
            return None
        return max(0.0, self.spent.cost - sum(step.cost or 0.0 for step in self.steps))

    @property
    def is_put_off(self) -> bool:
        """Whether the run rests until the knowledge base can be asked: it waits for no person and goes on by itself."""
        return self.status is Status.WAITING and self.question is None and bool(self.put_off)

    @property
    def comes_to(self) -> Status:
        """The status for whoever waits for the run: WAITING, too, if a person has to answer another run first, or if
        nothing was sent because another run is yet to answer the customer.
        """
        return Status.WAITING if self.status in FINAL and self.left_to else self.status

    @property
    def left_to(self) -> LeftTo:
        """Whom the run left its customer to: an older run, or the person whom that one waits for; "" for nobody.

        The rest of what was asked is not waited for, if something was sent and the older run goes on by itself.
        """
        if self.elsewhere is None:
            return ""
        if not self.elsewhere.goes_on:
            return "person"
        return "" if any(reply.delivered for reply in self.replies) else "run"

    def end(self, status: Status, message: str) -> None:
        self.status, self.message = status, message
