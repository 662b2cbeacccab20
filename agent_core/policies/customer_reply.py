"""The knowledge gate: no finish and no text before the knowledge base was asked (spec: the gate's table).

Its smaller rules are here, too: nothing is asked or done if nothing is new, no text of the model leaves the phone, and
nothing is tapped on a page that may be a chat but could not be read.
"""

from __future__ import annotations

import re

from agent_core.actions.types import Action, Back, Finish, GetKnowledgeData, Home, Launch, Type, TypeName, Wait
from agent_core.geometry import Point
from agent_core.perception.compare import name
from agent_core.perception.popups import panel_of
from agent_core.perception.readings import BubbleState, ChatScreen, Side
from agent_core.policies.base import Situation, Verdict, allow, bare, block, first_touch, rewrite, touched
from agent_core.policies.right_chat import is_contacts
from agent_core.policies.risk import control_at, row_around, rows_of

# For a text that is about to be typed. It is narrower than ``wording.asks``, which also recognises reports of faults:
# an answer that the model makes up ("7天内可以退货") is not a question.
_QUESTION = re.compile(
    r"[?？]|怎么|怎样|如何|为什么|为啥|什么|啥|吗|么$|呢|哪|几时|几天|多久|多少|能不能|可不可以|可以不|是否|有没有|谁|"
    r"\b(how|what|why|when|where|which|who|can|could|does|do you|is there)\b",
    re.IGNORECASE,
)
_LIKE_I = str.maketrans("l|1", "iii")
PAUSE = Wait(duration=1.0)


def looks_like_question(text: str) -> bool:
    """Tell whether ``text`` looks like a customer's question."""
    return bool(_QUESTION.search(text))


class CustomerReply:
    """The rows of the gate's table, applied in order, each to the result of the row before."""

    name = "customer_reply"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        table = _Table(proposal, situation)
        if situation.gate.knowledge_done:
            repeated = isinstance(proposal, Type | TypeName) and bare(proposal.text) in map(bare, situation.delivered)
            if repeated:
                return block(situation.say("gate.repeat_blocked"))
            table.query()
        elif isinstance(proposal, Finish | Wait) and nothing_to_answer(situation):
            return allow(proposal)  # ``NothingNew`` ends the run; that a question is open would contradict it
        else:
            table.finish()
            table.typed_question()
            table.wait()
            table.query()
        return table.verdict


class _Table:
    """One proposal on its way through the rows of the table."""

    def __init__(self, proposal: Action, situation: Situation) -> None:
        self._action = proposal
        self._situation = situation
        self._messages: list[str] = []
        self._pending: str | None = None

    @property
    def verdict(self) -> Verdict:
        if not self._messages:
            return allow(self._action)
        return rewrite(self._action, " ".join(self._messages), pending=self._pending)

    def finish(self) -> None:
        if isinstance(self._action, Finish):
            self._become(PAUSE, "gate.finish_blocked")

    def typed_question(self) -> None:
        action = self._action
        if isinstance(action, Type | TypeName) and action.text != self._situation.gate.contact:
            question = action.text.strip()
            if looks_like_question(question):
                self._pending = question
                self._become(PAUSE, "gate.question_not_typed", question=question)

    def wait(self) -> None:
        if not isinstance(self._action, Wait):
            return
        situation = self._situation
        question = situation.gate.pending_question if self._pending is None else self._pending
        if not question:
            self._become(PAUSE, "gate.find_question", app=situation.app_name)
        elif situation.in_app:
            self._become(GetKnowledgeData(query=question), "gate.wait_became_query", question=question)
        else:
            self._become(PAUSE, "gate.open_app_first", question=question, app=situation.app_name)

    def query(self) -> None:
        app = self._situation.app_name
        if isinstance(self._action, GetKnowledgeData) and not self._situation.in_app:
            self._become(Launch(app=app), "gate.query_needs_app", app=app)

    def _become(self, action: Action, key: str, **values: object) -> None:
        self._action = action
        self._messages.append(self._situation.say(key, **values))


class NoBuiltInAI:
    """The policy that keeps the model out of the app's own AI, which is bait: only Back, or leaving the app, leads
    out.
    """

    name = "no_built_in_ai"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        app = situation.app_name
        if situation.in_app and self._on_ai_page(situation):
            # Waiting and leaving the app touch nothing here; anything else would talk to the AI.
            if isinstance(proposal, Back | Home | Wait | Launch | Finish):
                return allow(proposal)
            return block(situation.say("gate.ai_page", app=app))
        if situation.in_app:
            entry = _entry_at(proposal, situation)
            if entry:
                return block(situation.say("gate.ai_blocked", target=entry, app=app))
        if isinstance(proposal, Launch) and is_ai_entry(proposal.app, situation):
            return block(situation.say("gate.ai_blocked", target=proposal.app, app=app))
        return allow(proposal)

    def _on_ai_page(self, situation: Situation) -> bool:
        if situation.chat is not None:
            return is_ai_entry(situation.chat.title, situation)
        if situation.profile is None:
            return False
        left, top, right, bottom = situation.profile.title_region
        width, height = situation.size
        return any(
            left * width <= r.box.center.x <= right * width
            and top * height <= r.box.center.y <= bottom * height
            and is_ai_entry(r.text, situation)
            for r in situation.readings
        )


def _entry_at(proposal: Action, situation: Situation) -> str:
    """Return the words of the entrance to the app's AI that a touch may open, or "" if it opens none.

    The avatar, the preview and the time of a row open it as well, and so does the whole area of a button.
    """
    entry = next((one.text for one in situation.targets(proposal) if is_ai_entry(one.text, situation)), "")
    pair = touched(proposal, situation.size)
    if entry or pair is None:
        return entry
    point = Point.from_relative(pair, situation.size)
    rows = [(row.name, row.box) for row in rows_of(situation)]
    unknown = [one for one in situation.readings if not any(box.contains(one.box.center) for _, box in rows)]
    rows += [(one.text, box) for one in unknown if (box := row_around(one, situation)) is not None]
    named = (name for name, box in rows if box.contains(point) and is_ai_entry(name, situation))
    return next(named, "") or control_at(point, situation, lambda one: _leads_to_ai(one.text, situation))


def _leads_to_ai(text: str, situation: Situation) -> bool:
    """Tell whether ``text`` names the app's AI or, outside of a chat, offers to ask it.

    The words that were searched for follow such an offer.
    """
    if is_ai_entry(text, situation):
        return True
    offers = situation.profile.ai_offers if situation.profile and situation.chat is None else ()
    return bare(text) != bare(situation.gate.contact) and _as_read(text).startswith(
        tuple(_as_read(one) for one in offers)
    )


def is_ai_entry(text: str, situation: Situation) -> bool:
    """Tell whether ``text`` is the whole name of the app's AI. The task's contact never counts as one."""
    name = bare(text)
    entries = situation.profile.ai_entries if situation.profile else ()
    return bool(name) and name != bare(situation.gate.contact) and _as_read(name) in {_as_read(one) for one in entries}


def _as_read(text: str) -> str:
    """Return ``text`` with one form for the letters that text recognition confuses in "AI"."""
    return bare(text).translate(_LIKE_I)


def nothing_new(chat: ChatScreen) -> bool:
    """Tell whether nobody wrote anything, or the newest message is ours and was delivered."""
    newest = chat.newest
    return newest is None or (newest.side is Side.ME and newest.state is BubbleState.OK)


class NothingNew:
    """The policy that ends the run successfully if the contact's own chat has no open question, whatever was proposed.

    This serves runs without a reply flow, such as a dry run. A reply flow decides by the ledger before a model is asked
    (``open_rows``).
    """

    name = "nothing_new"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if not nothing_to_answer(situation):
            return allow(proposal)
        said = situation.say("run.nothing_new", contact=situation.gate.contact)
        return rewrite(Finish(message=said), said)


def nothing_to_answer(situation: Situation) -> bool:
    """Tell whether the contact's own chat is in front and has surely no open question."""
    chat, gate = situation.chat, situation.gate
    if chat is None or not chat.sure or gate.knowledge_done or situation.open_rows or not nothing_new(chat):
        return False
    return bool(gate.contact) and is_contacts(chat, gate)


class ProvenancePolicy:
    """The policy that lets the model type one thing only: the contact's exact name in a search field, never in a
    chat.
    """

    name = "provenance"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if not isinstance(proposal, Type | TypeName):
            return allow(proposal)
        contact = situation.gate.contact
        if not contact or name(proposal.text) != name(contact):
            key = "gate.type_blocked" if situation.chat is not None or not contact else "gate.search_name_only"
            return block(situation.say(key, text=proposal.text, contact=contact))
        if situation.chat is not None:
            return block(situation.say("gate.name_in_chat", text=proposal.text))
        return allow(proposal)


class UnreadPage:
    """The policy that blocks touches on a possible chat page that could not be read.

    Calls, settings, Send, a draft or the red mark of a failed text may be anywhere although no reading shows them.
    Allowed are swipes that scroll above the possible place of the input, because they click nothing, and touches on a
    dialog over the page whose words were read, because it is not part of the page.
    """

    name = "unread_page"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        below = situation.unread_below
        if below is None or not situation.in_app:
            return allow(proposal)
        place = first_touch(proposal)
        if place is None:
            return (
                block(situation.say("gate.unread_page")) if isinstance(proposal, Type | TypeName) else allow(proposal)
            )
        point = Point.from_relative(place, situation.size)
        scrolls = touched(proposal, situation.size) is None
        if point.y < below and (scrolls or _on_a_dialog(point, situation)):
            return allow(proposal)
        return block(situation.say("gate.unread_page"))


def _on_a_dialog(point: Point, situation: Situation) -> bool:
    """Tell whether a point lies on a dialog over a dimmed page, and the words of the dialog were read."""
    panel = panel_of(situation.frame)
    if panel is None or not panel.contains(point):
        return False
    return any(panel.contains(one.box.center) for one in situation.readings if one.text.strip())
