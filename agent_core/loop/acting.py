"""Carries out actions on the phone. An error that the model should know is an ActionFailed."""

from __future__ import annotations

import asyncio

from agent_core.actions.types import (
    Action,
    Back,
    CallAPI,
    DoubleTap,
    Finish,
    GetKnowledgeData,
    Home,
    Interact,
    Launch,
    LongPress,
    Note,
    PressKey,
    Swipe,
    TakeOver,
    Tap,
    Type,
    TypeName,
    Wait,
)
from agent_core.actions.write import in_words
from agent_core.devices.base import Device, Key, TextInput, TouchWatch
from agent_core.errors import (
    ActionFailed,
    AppNotFound,
    CommandFailed,
    DeviceError,
    KnowledgeError,
    TextInputFailed,
)
from agent_core.geometry import Point
from agent_core.loop import questions
from agent_core.loop.launching import AppLauncher
from agent_core.loop.outcome import ActResult, Ending
from agent_core.loop.thinking import Summary
from agent_core.perception.compare import same_name
from agent_core.perception.observer import Observation
from agent_core.policies import Judgement, Situation, approval
from agent_core.ports import Chooser, KnowledgeBase, Lease
from agent_core.reply.choosing import decide
from agent_core.reply.flow import ReplyFlow
from agent_core.reply.outcome import told_reply
from agent_core.retry import RETRIES
from agent_core.session import GateState, Session, Status
from agent_core.texts import say, sentences, told

KEYS = {"enter": Key.ENTER, "app_switch": Key.APP_SWITCH}


async def do_on(device: Device, action: Action, size: tuple[int, int], launcher: AppLauncher) -> TextInput | None:
    """Carry out ``action``; return what typed, if it was a text.

    size: of the picture that its points belong to, in pixels.

    Raises ActionFailed if the action is none on the phone, AppNotFound if there is no such app, and the device's
    DeviceError.
    """
    match action:
        case Launch(app=app):
            await launcher.launch(app)
        case Tap(element=pair):
            await device.tap(Point.from_relative(pair, size))
        case DoubleTap(element=pair):
            await device.double_tap(Point.from_relative(pair, size))
        case LongPress(element=pair, duration=seconds):
            await device.long_press(Point.from_relative(pair, size), seconds)
        case Swipe(start=start, end=end, duration=seconds):
            await device.swipe(Point.from_relative(start, size), Point.from_relative(end, size), seconds)
        case Type(text=text) | TypeName(text=text):
            async with device.keyboard() as keyboard:
                await keyboard.clear()
                await keyboard.type(text)
                return keyboard
        case Back():
            await device.key(Key.BACK)
        case Home():
            await device.key(Key.HOME)
        case PressKey(key=key):
            await device.key(KEYS[key])
        case _:
            raise ActionFailed(f"{action.kind} is not an act on the phone.")
    return None


# Trying again may help, either by the model, which is told, or by code.
RETRIABLE = (ActionFailed, AppNotFound, TextInputFailed, CommandFailed, KnowledgeError)
TRIES = 3  # in a row, for steps of the reply flow that need no model


class ActionPerformer:
    """The performer of actions on the phone. It checks the lease before every call that changes something there."""

    def __init__(
        self,
        device: Device,
        lease: Lease,
        session: Session,
        knowledge: KnowledgeBase,
        flow: ReplyFlow | None,
        launcher: AppLauncher,
        touches: TouchWatch,
        summary: Summary,
        chooser: Chooser | None,
    ) -> None:
        self._device = device
        self._lease = lease
        self._session = session
        self._knowledge = knowledge
        self._flow = flow
        self._launcher = launcher
        self._touches = touches
        self._summary = summary
        self._chooser = chooser
        self._failed = 0
        self._typed: tuple[TextInput, str] | None = None  # what typed last, and the digest of the screen before

    async def perform(self, judgement: Judgement, seen: Observation) -> ActResult:
        """Carry out the gate's result for a proposal; ``seen`` is the screen that it was made on.

        Errors that the model can react to (no such app, no keyboard, a failed command) become a failed result for the
        model. Other errors (the phone is gone, access is denied, another owner has the phone) are raised.
        """
        if judgement.action is None:
            return ActResult("", ok=False)
        await self._read_back(seen)
        try:
            return await self._act(judgement.action, seen, judgement.to_ask)
        except RETRIABLE as error:
            return ActResult(say(self._session.lang, "run.failed", error=told(error, self._session.lang)), ok=False)

    async def before_model(self, flow: ReplyFlow, seen: Observation) -> ActResult | None:
        """Let the reply flow do the steps that need no model.

        Errors are retried a few times, as the model would retry.
        """
        try:
            result = await flow.before_model(seen)
        except RETRIABLE as error:
            self._failed += 1
            if self._failed >= TRIES:
                raise
            return ActResult(say(self._session.lang, "run.failed", error=error), ok=False)
        self._failed = 0
        return result

    async def _act(self, action: Action, seen: Observation, to_ask: str) -> ActResult:
        session = self._session
        if session.dry_run:
            told = await self._rehearsed(action, seen)
            return ActResult(told, ending=Ending(Status.SUCCEEDED, told))
        allowed = approval.holds(session, action, as_seen(seen))
        match action:
            case Finish(message=result, success=success):
                status = Status.SUCCEEDED if success else Status.FAILED
                if self._flow is not None:
                    return ActResult(result, ok=success, ending=Ending(status, told_reply(session, result, ok=success)))
                result = result or next((one.text for one in reversed(session.notes) if one.summary), "")
                return ActResult(result, ok=success, ending=Ending(status, result))
            case GetKnowledgeData(query=query) if self._flow is not None:
                return await self._flow.get_knowledge(query)
            case GetKnowledgeData(query=query):
                return await self._ask_knowledge(query)
            case Wait(duration=seconds):
                await asyncio.sleep(seconds)
                return ActResult(say(session.lang, "run.waited"))
            case Note(message=message):
                usage = await self._summary.note(session, seen, message)
                return ActResult(say(session.lang, "run.noted"), usage=usage)
            case Interact(question=text, choices=choices):
                return ActResult("", ok=False, question=questions.interact(session, text, choices))
            case TakeOver(message=message):
                return ActResult("", ok=False, question=questions.take_over(self._session, message))
            case Tap(message=message) if (to_ask or message) and not allowed:
                question = questions.sensitive_tap(session, action, as_seen(seen), to_ask)
                return ActResult("", ok=False, question=question)
            case CallAPI(instruction=instruction):
                text, usage = await self._summary.make(session, seen, instruction)
                return ActResult(say(session.lang, "run.summary", text=text), usage=usage)
            case _:
                return await self._touch(action, seen, allowed=allowed)

    async def _rehearsed(self, action: Action, seen: Observation) -> str:
        """Say what would be done and that a dry run ends there; for a question, also what would be answered."""
        lang, query = self._session.lang, action.query.strip() if isinstance(action, GetKnowledgeData) else ""
        if isinstance(action, Finish) and action.message:
            return say(lang, "run.dry_run_end", message=action.message)
        if not query:
            said = say(lang, "run.dry_run", action=in_words(lang, action.model_dump()))
            shown = seen.chat is not None and same_name(seen.chat.title, self._session.gate.contact or seen.chat.title)
            more = "" if self._flow is None or shown else say(lang, "run.dry_run_open_chat")
            return sentences([said, more], lang)
        chosen = await decide(self._chooser, query, query, await self._knowledge.retrieve(query))
        if chosen is None:
            return say(lang, "run.dry_run_unsure", query=query)
        return say(lang, "run.dry_run_answer", query=query, text=chosen.text)

    async def _touch(self, action: Action, seen: Observation, *, allowed: bool) -> ActResult:
        """Carry out a touch. Repeat it if it certainly had no effect and the screen is still as the model saw it.

        An approval (``allowed``) is used up by one tap: a later tap that looks the same needs a new one.
        """
        waits = iter(RETRIES[ActionFailed])
        while True:
            await self._lease.check()
            if self._touches.touched:
                return ActResult("", ok=False, question=questions.person_on_phone(self._session))
            try:
                typed = await do_on(self._device, action, seen.size, self._launcher)
            except DeviceError as error:
                if allowed and not error.may_repeat:
                    self._session.approval = None
                wait = next(waits, None)
                if wait is None or error.retried or not error.may_repeat or not await self._same_after(wait, seen):
                    raise
            else:
                if allowed:
                    self._session.approval = None
                self._typed = None if typed is None else (typed, seen.frame.digest)
                return ActResult(say(self._session.lang, "run.done"), acted=True)

    async def _read_back(self, seen: Observation) -> None:
        """Have the next text typed in another way if the last one changed nothing on the screen."""
        if self._typed is not None:
            keyboard, before = self._typed
            self._typed = None
            if seen.frame.digest == before:
                await keyboard.confirm(arrived=False)

    async def _same_after(self, seconds: float, seen: Observation) -> bool:
        await asyncio.sleep(seconds)
        return (await self._device.screenshot()).digest == seen.frame.digest

    async def _ask_knowledge(self, query: str) -> ActResult:
        """Report the knowledge base's answer to the model, outside of a reply task. Nothing is sent."""
        if not query.strip():
            return ActResult(say(self._session.lang, "run.query_blank"), ok=False)
        records = await self._knowledge.retrieve(query.strip())
        if not records:
            return ActResult(say(self._session.lang, "run.knowledge_nothing"), ok=False)
        return ActResult(say(self._session.lang, "run.knowledge_only", text=records[0].text))


def as_seen(seen: Observation) -> Situation:
    """Return the situation by which a person's approval of a tap is asked and looked up."""
    return Situation(None, seen.window, seen.size, GateState(), seen.readings, frame=seen.frame)
