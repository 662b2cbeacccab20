"""Stores the model's input at each step: enough to ask it, or another model, again.

The result is in the session's steps. A request is written while the model thinks, so no step waits for it; a step is
reported only after its request is stored.

Anything that people may not see is covered in the picture and the texts before they are stored. A picture with nothing
to cover is, byte for byte, the one that was sent.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import structlog
from PIL import Image
from pydantic import BaseModel, Field

from agent_core.actions.parse import Dialect
from agent_core.devices.base import Frame, Window
from agent_core.geometry import Box, Point
from agent_core.model.history import as_json
from agent_core.model.profile import ModelProfile
from agent_core.model.prompt import data_url
from agent_core.perception.observer import Observation
from agent_core.perception.readings import ChatScreen, Reading
from agent_core.perception.redaction import (
    COVER,
    Redaction,
    Secrets,
    cover,
    covered_text,
    figures_in,
    secrets_in,
    tells_secret,
)
from agent_core.ports import TrajectoryStore
from agent_core.session import GateState, Session

log = structlog.get_logger(__name__)

Pictures = Literal["covered", "raw", "off"]
Message = dict[str, Any]
Places = Collection[object]  # (x, y) of covered elements, as they appear in the prompt

_PICTURE = "picture:"  # replaces a data URL, followed by the picture's digest
_HEAD = "data:image/jpeg;base64,"


class ModelRequest(BaseModel):
    """One request for an action.

    messages: those after the first ``kept`` messages, which are the same as in the step before. Pictures in them are
    named by their digests.
    readings, chat, window, gate: what the policies judged the answer by.
    observation, summary, replies: what the session knew; ``replies`` is the number of replies sent.
    covered: places that nobody may see, in pixels of the screen.
    raw: they are not covered in what is stored.
    """

    form: Literal[1] = 1
    step: int
    model: str
    profile: str
    dialect: Dialect
    sees: bool = True  # False: the model was sent no picture
    kept: int = 0
    messages: list[Message] = Field(default_factory=list)
    observation: str = ""
    summary: str = ""
    summarised_at: int = 0
    replies: int = 0
    gate: GateState = Field(default_factory=GateState)
    window: Window
    size: tuple[int, int]
    readings: list[Reading] = Field(default_factory=list)
    chat: ChatScreen | None = None
    unread_below: int | None = None
    picture: str = ""  # its digest; "" if none is stored
    covered: list[Box] = Field(default_factory=list)
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The destination of a run's requests.

    pictures: covered for people, raw as they were sent, or off for none.
    """

    store: TrajectoryStore
    pictures: Pictures = "covered"


class Tape:
    """The record of one run's requests to the model. Errors are only logged: no run fails because of its recording."""

    def __init__(self, session: Session, trajectory: Trajectory, redaction: Redaction) -> None:
        self._session = session
        self._to = trajectory
        self._redaction = redaction
        self._newest: tuple[int, Sequence[Message]] = (0, ())  # the newest stored step, and its messages
        self._before: Sequence[Message] = ()  # the messages of the step before it, because a step may be asked again
        self._shown: set[str] = set()  # digests of the pictures that are stored
        self._secrets = Secrets()  # all secrets so far: a text read on one screen may be quoted on later ones
        self._told = 0  # number of steps that were searched for secrets
        self._writing: asyncio.Task[None] | None = None

    async def asked(self, seen: Observation, messages: Sequence[Message], model: str, profile: ModelProfile) -> None:
        """Start to write down a request to the model. Waits only until the one before is written."""
        await self.settled()
        messages = list(messages)  # a copy, because the session changes
        request = _request(self._session, seen, model, profile)
        self._writing = asyncio.create_task(self._write(request, seen.frame, messages), name="trajectory")

    async def settled(self) -> None:
        """Wait until the current request is stored or has failed."""
        if self._writing is not None:
            await asyncio.wait([self._writing])  # it ends by itself, even if this task is cancelled
            self._writing = None

    async def _write(self, request: ModelRequest, frame: Frame, messages: Sequence[Message]) -> None:
        try:
            covered = await self._redaction.boxes(frame)
            raw = bool(covered) and self._to.pictures == "raw"
            request = request.model_copy(update={"covered": list(covered), "raw": raw})
            url = _url_of(messages) if self._to.pictures != "off" else ""
            if covered and url and not raw:
                url = await asyncio.to_thread(lambda: data_url(cover(frame.image, covered)))
            picture = base64.b64decode(url.removeprefix(_HEAD)) if url else None
            digest = sha256(picture).hexdigest()[:24] if picture else ""
            plain = [_named(message, digest) for message in messages]
            secrets = self._known(request)
            hide = bool(secrets or covered) and self._to.pictures != "raw"
            if hide:
                plain = await asyncio.to_thread(covered_messages, plain, request, secrets)
                request = await asyncio.to_thread(without_secrets, request, secrets)
            if request.step > self._newest[0]:
                self._before = self._newest[1]
            kept = _same(self._before, plain)
            request = request.model_copy(update={"kept": kept, "messages": plain[kept:], "picture": digest})
            data = request.model_dump_json(exclude_defaults=True)
            new = None if digest in self._shown else picture
            await self._to.store.asked(self._session.run_id, request.step, data, digest=digest, picture=new)
            self._shown.add(digest)
            self._newest = (request.step, plain)
        except Exception as error:  # noqa: BLE001 - of whatever kind: the run is worth more than its recording
            log.warning("trajectory_not_written", run_id=self._session.run_id, step=request.step, error=repr(error))

    def _known(self, request: ModelRequest) -> Secrets:
        """Return all secrets so far, including those of earlier attempts if the session's texts show them."""
        if self._redaction.on:
            session, package, gate = self._session, request.window.package, request.gate
            steps, self._told = session.steps[self._told :], len(session.steps)
            told = [(f"{step.result} {step.followed}", step.package) for step in steps]
            told += [(text, package) for text in gate.delivered]
            told += [(text, package) for text in (request.observation, request.summary, gate.pending_question)]
            self._secrets |= secrets_of(request) | figures_in([text for text, app in told if tells_secret(text, app)])
        return self._secrets


def _request(session: Session, seen: Observation, model: str, profile: ModelProfile) -> ModelRequest:
    """Return the facts known before the model has answered, because the session changes afterwards."""
    return ModelRequest(
        step=len(session.steps) + 1,
        model=model,
        profile=profile.name,
        dialect=profile.dialect,
        sees=profile.vision,
        observation=session.observation,
        summary=session.summary,
        summarised_at=session.summarised_at,
        replies=len(session.replies),
        gate=session.gate.model_copy(deep=True),
        window=seen.window,
        size=seen.size,
        readings=list(seen.readings),
        chat=seen.chat,
        unread_below=seen.unread_below,
    )


# Messages -------------------------------------------------------------------------------------------------------------


def whole_messages(requests: Sequence[ModelRequest]) -> list[list[Message]]:
    """Return the full messages of each of a run's requests, in order; ``picture_in`` finds the names of pictures."""
    before: list[Message] = []
    found = []
    for request in requests:
        before = [*before[: request.kept], *request.messages]
        found.append(before)
    return found


def with_pictures(messages: Sequence[Message], shown: Callable[[str], str]) -> list[Message]:
    """Return the messages with ``shown(digest)``, a URL, for each picture. Pictures without a URL are left out."""
    return [_parts(message, shown) for message in messages]


def _parts(message: Message, shown: Callable[[str], str]) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for part in content:
        digest = picture_in(part)
        url = shown(digest) if digest is not None else ""
        if digest is None:
            parts.append(part)
        elif url:
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return {**message, "content": parts}


def picture_in(part: Message) -> str | None:
    """Return the digest of the picture in this part of a message, "" if it was not stored, or None for a text."""
    if part.get("type") != "image_url":
        return None
    return str(part["image_url"]["url"]).removeprefix(_PICTURE)


def picture_url(jpeg: bytes) -> str:
    """Return a stored JPEG as a data URL."""
    return _HEAD + base64.b64encode(jpeg).decode()


def _named(message: Message, digest: str) -> Message:
    """Return the message with the picture's name instead of the picture."""
    return _parts(message, lambda _: _PICTURE + digest)


def _url_of(messages: Sequence[Message]) -> str:
    content = messages[-1].get("content")
    parts = content if isinstance(content, list) else []
    return next((part["image_url"]["url"] for part in parts if part.get("type") == "image_url"), "")


def _same(before: Sequence[Message], messages: Sequence[Message]) -> int:
    """Return how many messages at the beginning are the same as before."""
    pairs = zip(before, messages, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(before), len(messages)))


# Secrets --------------------------------------------------------------------------------------------------------------


def secrets_of(request: ModelRequest) -> Secrets:
    """Return the secrets among the texts at covered places."""
    read = [reading.text for reading in request.readings if _hidden(reading.box, request)]
    if (chat := request.chat) is not None:
        read += [
            text for bubble in chat.bubbles if _hidden(bubble.box, request) for text in (bubble.text, bubble.quoted)
        ]
        read += [chat.draft or ""] if _hidden(chat.input_box, request) else []
    return secrets_in(read)


def _hidden(box: Box | None, request: ModelRequest) -> bool:
    """Tell whether something is covered there. A model's transcription has no place, so anything covered counts."""
    return bool(request.covered) if box is None else any(box.intersects(other) for other in request.covered)


def covered_messages(messages: Sequence[Message], request: ModelRequest, secrets: Secrets) -> list[Message]:
    """Return a request's messages without secrets. In the last one, elements at covered places are covered, too.

    The system prompt contains nothing of a screen and the task is a person's text, so both stay unchanged.
    """
    hidden = [reading.box.center for reading in request.readings if _hidden(reading.box, request)]
    places = {Point(max(0, point.x), max(0, point.y)).to_relative(request.size) for point in hidden}
    newest = len(messages) - 1
    return [_covered_message(one, secrets, places if at == newest else set()) for at, one in enumerate(messages)]


def _covered_message(message: Message, secrets: Secrets, places: Places) -> Message:
    content = message.get("content")
    if message.get("role") == "system":
        return message
    if not isinstance(content, list):
        return {**message, "content": covered_text(str(content or ""), secrets)}
    parts = [
        {**part, "text": _covered_info(part["text"], secrets, places)} if "text" in part else part for part in content
    ]
    return {**message, "content": parts}


def _covered_info(text: str, secrets: Secrets, places: Places) -> str:
    """Cover a message of ours: a heading or the task, then the screen as JSON. Cover other texts as a whole."""
    head, _, told = text.rpartition("\n\n")
    try:
        info = json.loads(told)
    except ValueError:
        info = None
    if not isinstance(info, dict):
        return covered_text(text, secrets)
    covered = {key: _covered_value(key, value, secrets, places) for key, value in info.items()}
    return text if covered == info else f"{head}\n\n{as_json(covered)}"


def _covered_value(key: str, value: object, secrets: Secrets, places: Places) -> object:
    if key == "elements" and isinstance(value, list):
        return [_covered_element(one, secrets, places) if isinstance(one, dict) else one for one in value]
    if isinstance(value, list):
        return [_covered_value(key, one, secrets, places) for one in value]
    return covered_text(value, secrets) if isinstance(value, str) and key != "current_app" else value


def _covered_element(element: Message, secrets: Secrets, places: Places) -> Message:
    text = str(element.get("text", ""))
    hidden = bool(text) and (element.get("x"), element.get("y")) in places
    return {**element, "text": COVER if hidden else covered_text(text, secrets)}


def without_secrets(request: ModelRequest, secrets: Secrets) -> ModelRequest:
    """Return the request as people may see it, except for its messages."""

    def words(written: str) -> str:
        return covered_text(written, secrets)

    def text(written: str, box: Box | None) -> str:
        return COVER if written and _hidden(box, request) else words(written)

    chat, gate = request.chat, request.gate
    if chat is not None:
        bubbles = tuple(
            replace(one, text=text(one.text, one.box), quoted=text(one.quoted, one.box)) for one in chat.bubbles
        )
        draft = None if chat.draft is None else text(chat.draft, chat.input_box)
        doubts = tuple(replace(one, text=words(one.text), other=words(one.other)) for one in chat.doubts)
        chat = replace(chat, bubbles=bubbles, draft=draft, doubts=doubts)
    update = {
        "pending_question": words(gate.pending_question),
        "delivered": [words(one) for one in gate.delivered],
        "doubts_confirmed": [words(one) for one in gate.doubts_confirmed],
    }
    return request.model_copy(
        update={
            "readings": [replace(reading, text=text(reading.text, reading.box)) for reading in request.readings],
            "chat": chat,
            "gate": gate.model_copy(update=update),
            "observation": words(request.observation),
            "summary": words(request.summary),
            "raw": False,
        }
    )


def covered_request(request: ModelRequest, secrets: Secrets) -> ModelRequest:
    """Return a request that was stored raw as people may see it, including its messages."""
    messages = covered_messages(request.messages, request, secrets)
    return without_secrets(request, secrets).model_copy(update={"messages": messages})


def covered_picture(jpeg: bytes, request: ModelRequest) -> bytes:
    """Return the stored JPEG as people may see it."""
    if not request.raw:
        return jpeg
    with Image.open(io.BytesIO(jpeg)) as opened:
        image = opened.convert("RGB")
    across, down = image.width / request.size[0], image.height / request.size[1]
    boxes = [
        Box(int(box.left * across), int(box.top * down), -int(-box.right * across), -int(-box.bottom * down))
        for box in request.covered
    ]
    out = io.BytesIO()
    cover(image, boxes).save(out, "JPEG", quality=80)
    return out.getvalue()
