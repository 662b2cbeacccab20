"""The knowledge gate: no finish and no text before the knowledge base was asked (spec: the gate's table)."""

from __future__ import annotations

import re

from agent_core.actions.types import Action, Back, Finish, GetKnowledgeData, Home, Launch, Type, TypeName, Wait
from agent_core.gate.base import Situation, Verdict, allow, block, rewrite

_QUESTION = re.compile(
    r"[?？]|怎么|怎样|如何|为什么|为啥|什么|啥|吗|么$|呢|哪|几时|几天|多久|多少|能不能|可不可以|可以不|是否|有没有|谁|"
    r"\b(how|what|why|when|where|which|who|can|could|does|do you|is there)\b",
    re.IGNORECASE,
)
PAUSE = Wait(duration=1.0)


def looks_like_question(text: str) -> bool:
    """Does the text look like something a customer asks?"""
    return bool(_QUESTION.search(text))


class CustomerReply:
    """The rows of the table, in its order, each applied to what the row before made of the proposal."""

    name = "customer_reply"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        table = _Table(proposal, situation)
        if situation.gate.knowledge_done:
            repeated = isinstance(proposal, Type | TypeName) and _bare(proposal.text) in map(_bare, situation.delivered)
            if repeated:
                return block(situation.say("gate.repeat_blocked"))
            table.query()
        else:
            table.finish()
            table.typed_question()
            table.wait()
            table.query()
        return table.verdict


class _Table:
    """One proposal on its way through the rows."""

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
    """The app's own AI is bait: it is never entered, and left by Back alone."""

    name = "no_built_in_ai"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        app = situation.app_name
        if situation.in_app and self._on_ai_page(situation):
            # Waiting and leaving the app touch nothing here; the rest would talk to the AI.
            if isinstance(proposal, Back | Home | Wait | Launch | Finish):
                return allow(proposal)
            return block(situation.say("gate.ai_page", app=app))
        if situation.in_app:
            entry = next((text for text in situation.targets(proposal) if is_ai_entry(text, situation)), None)
            if entry is not None:
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


def is_ai_entry(text: str, situation: Situation) -> bool:
    """Is this the name of the app's AI? Whole names; the contact of the task is never one."""
    bare = _bare(text)
    entries = situation.profile.ai_entries if situation.profile else ()
    return bool(bare) and bare != _bare(situation.gate.contact) and bare in {_bare(entry) for entry in entries}


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text).casefold()
