"""The knowledge gate: no finish and no text before the knowledge base was asked (spec: the gate's table)."""

from __future__ import annotations

import re

from agent_core.actions.types import Back, Finish, GetKnowledgeData, Home, Launch, Type, TypeName, Wait
from agent_core.gate.base import Situation, Verdict, touched

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

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        if situation.gate.knowledge_done:
            return self._query(self._after(verdict, situation), situation)
        for row in (self._finish, self._typed_question, self._wait, self._query):
            verdict = row(verdict, situation)
        return verdict

    def _finish(self, verdict: Verdict, situation: Situation) -> Verdict:
        if isinstance(verdict.action, Finish):
            return verdict.rewrite(self.name, PAUSE, situation.say("gate.finish_blocked"))
        return verdict

    def _typed_question(self, verdict: Verdict, situation: Situation) -> Verdict:
        action = verdict.action
        if isinstance(action, Type | TypeName) and action.text != situation.gate.contact:
            question = action.text.strip()
            if looks_like_question(question):
                message = situation.say("gate.question_not_typed", question=question)
                return verdict.rewrite(self.name, PAUSE, message, pending=question)
        return verdict

    def _wait(self, verdict: Verdict, situation: Situation) -> Verdict:
        if not isinstance(verdict.action, Wait):
            return verdict
        asked_now = verdict.pending_question
        question = situation.gate.pending_question if asked_now is None else asked_now
        app = situation.profile.name
        if not question:
            return verdict.rewrite(self.name, PAUSE, situation.say("gate.find_question", app=app))
        if situation.in_app:
            message = situation.say("gate.wait_became_query", question=question)
            return verdict.rewrite(self.name, GetKnowledgeData(query=question), message)
        return verdict.rewrite(self.name, PAUSE, situation.say("gate.open_app_first", question=question, app=app))

    def _query(self, verdict: Verdict, situation: Situation) -> Verdict:
        if isinstance(verdict.action, GetKnowledgeData) and not situation.in_app:
            app = situation.profile.name
            return verdict.rewrite(self.name, Launch(app=app), situation.say("gate.query_needs_app", app=app))
        return verdict

    def _after(self, verdict: Verdict, situation: Situation) -> Verdict:
        action = verdict.action
        if isinstance(action, Type | TypeName) and _bare(action.text) in {_bare(t) for t in situation.delivered}:
            return verdict.block(self.name, situation.say("gate.repeat_blocked"))
        return verdict


class NoBuiltInAI:
    """The app's own AI is bait: it is never entered, and left by Back alone."""

    name = "no_built_in_ai"

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        action, app = verdict.action, situation.profile.name
        if situation.in_app and self._on_ai_page(situation):
            # Waiting and leaving the app touch nothing here; the rest would talk to the AI.
            if isinstance(action, Back | Home | Wait | Launch | Finish):
                return verdict
            return verdict.block(self.name, situation.say("gate.ai_page", app=app))
        pair = touched(action) if action is not None else None
        if pair is not None and situation.in_app:
            target = situation.target(pair)
            if is_ai_entry(target, situation):
                return verdict.block(self.name, situation.say("gate.ai_blocked", target=target, app=app))
        if isinstance(action, Launch) and is_ai_entry(action.app, situation):
            return verdict.block(self.name, situation.say("gate.ai_blocked", target=action.app, app=app))
        return verdict

    def _on_ai_page(self, situation: Situation) -> bool:
        if situation.chat is not None:
            return is_ai_entry(situation.chat.title, situation)
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
    return (
        bool(bare)
        and bare != _bare(situation.gate.contact)
        and bare in {_bare(e) for e in situation.profile.ai_entries}
    )


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text).casefold()
