"""Builds the messages of a request, with their pictures, in the form that the model's profile wants.

They are one conversation: the system prompt, the task once, past steps as text, the newest screen with its picture.
Everything before the newest screen grows only at its end, and is condensed in blocks, so that a server's prefix cache
stays valid. A model that keeps its own summary gets that in place of the past. A picture is a small JPEG as a data URL;
each screen is encoded once. For models that answer best by calling a tool, the actions are offered as tools.
"""

from __future__ import annotations

import base64
import io
import math
import string
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from PIL import Image
from pydantic import BaseModel

from agent_core.actions import types
from agent_core.apps import profile as apps
from agent_core.apps.profile import AppProfile
from agent_core.geometry import Point
from agent_core.lru import keep_newest
from agent_core.model.history import LONGEST_OBSERVATION, Message, app_name, as_json, history, recalled, told_of
from agent_core.model.profile import ModelProfile, model_profile
from agent_core.model.usage import PICTURE_TOKENS, text_tokens
from agent_core.model.words import filled, form_texts, how_to_answer, own_actions, own_prompt, texts
from agent_core.perception.readings import Reading
from agent_core.session import Session
from agent_core.texts import cut, weekday

MAX_BASE64 = 70 * 1024  # characters of a picture in one request
HALVE_ABOVE = 1200  # pixels of the longer side; smaller pictures stay as they are
QUALITY = 80


class Picture(Protocol):
    """The needed parts of a captured frame: the image, and a digest that is equal for equal screens."""

    @property
    def image(self) -> Image.Image: ...

    @property
    def digest(self) -> str: ...


def data_url(image: Image.Image) -> str:
    """Return ``image`` as a JPEG data URL of at most about 70 KB of base64: at half size, then at lower quality."""
    encoded = b""
    for candidate, quality in _candidates(image if image.mode == "RGB" else image.convert("RGB")):
        buffer = io.BytesIO()
        candidate.save(buffer, "JPEG", quality=quality)
        encoded = base64.b64encode(buffer.getvalue())
        if len(encoded) <= MAX_BASE64:
            break
    return f"data:image/jpeg;base64,{encoded.decode()}"


def picture_tokens(size: tuple[int, int]) -> int:
    """Return the most tokens that a picture of ``size`` pixels costs a model of this family: one per 28×28 patch."""
    factor = _factor(size)
    return math.ceil(size[0] / factor / 28) * math.ceil(size[1] / factor / 28) + 16


def _factor(size: tuple[int, int]) -> int:
    return 2 if max(size) > HALVE_ABOVE else 1


def _candidates(image: Image.Image) -> Iterator[tuple[Image.Image, int]]:
    factor = _factor(image.size)
    half = image.reduce(factor) if factor > 1 else image
    for quality in (QUALITY, 65, 50):
        yield half, quality
    for smaller in (2, 3, 4):
        yield half.reduce(smaller), 60


class PictureCache:
    """Data URLs by the digest of the screen; the newest screens are kept."""

    def __init__(self, size: int = 8) -> None:
        self._size = size
        self._urls: OrderedDict[str, str] = OrderedDict()
        self.encoded = 0  # how often a picture was really encoded

    def url(self, picture: Picture) -> str:
        known = self._urls.get(picture.digest)
        if known is None:
            known = data_url(picture.image)
            self.encoded += 1
        keep_newest(self._urls, picture.digest, known, self._size)
        return known


USUAL = model_profile("autoglm-phone")
ELEMENTS_TOKENS = 3_500  # all elements together; whatever does not fit is left out from the end
LONGEST_TEXT = 300  # of one element

_pictures = PictureCache()


def system_prompt(
    session: Session, profile: AppProfile | None = None, *, elements: bool = False, model: ModelProfile = USUAL
) -> str:
    """Return the system prompt of this run: the same bytes at each of its steps."""
    lang = session.lang
    words = texts(lang)
    day = {"date": session.date, "weekday": weekday(lang, session.date)}
    if own := own_prompt(model, lang):
        sections = [string.Template(own).substitute(day), filled(words.screen, model, lang)]
    else:
        sections = [
            filled(words.system, model, lang, **day),
            *how_to_answer(model, lang),
            filled(words.screen, model, lang),
            filled(words.rules, model, lang),
        ]
    if elements:
        sections.append(words.elements)
    if session.gate.enabled:
        app = _task_app(session, profile)
        forbidden = "、".join(app.ai_entries) if app else ""
        if own and (more := own_actions(model, lang, own)):
            sections.append(more)
        sections.append(
            filled(
                words.reply,
                model,
                lang,
                app=app.name if app else session.gate.app,
                contact=session.gate.contact,
                forbidden=forbidden or words.none,
            )
        )
    return "\n".join(section.strip() for section in sections)


def tools_of(model: ModelProfile, lang: str) -> list[dict[str, Any]]:
    """Return the actions as tools of the chat completions API; [] for a profile without tools."""
    return tools(form_texts(model.form, lang).actions) if model.tools else []


def _task_app(session: Session, profile: AppProfile | None) -> AppProfile | None:
    """Return the task's app, not the one in front: the prefix must not change with the screen."""
    return next((known for known in apps.profiles() if known.key == session.gate.app), profile)


def build_messages(
    session: Session,
    *,
    current_app: str,
    picture: Picture | None,
    elements: Sequence[Reading] | None,
    profile: AppProfile | None,
    size: tuple[int, int] | None = None,
    model: ModelProfile = USUAL,
) -> list[Message]:
    """Return the messages of the next request, within the window of ``model`` with a whole reply.

    current_app: the name of the app in front.
    elements: None shows none. Their boxes are in pixels of the picture, or of a screen of ``size`` (width, height) if
    there is no picture.
    profile: the reply task's app, used if the gate's app has no profile of its own.
    """
    shown = size or (picture.image.size if picture is not None else None)
    if elements is not None and shown is None:
        raise ValueError("elements without a picture need the size of the screen")
    prompt = system_prompt(session, profile, elements=elements is not None, model=model)
    system = {"role": "system", "content": prompt}
    info: dict[str, Any] = {"current_app": current_app}
    if told := session.observation or (told_of(session.steps[-1]) if session.steps else ""):
        info["last_observation"] = cut(told, LONGEST_OBSERVATION)
    if elements is not None and shown is not None:
        info["elements"] = _elements(elements, shown)
    if not session.steps:
        return [system, _user(f"{session.task}\n\n{as_json(info)}", picture)]
    if model.history == "summary":
        return [system, _user(f"{session.task}\n\n{as_json({**recalled(session, model), **info})}", picture)]
    opening = _user(f"{session.task}\n\n{as_json({'current_app': app_name(session.steps[0].package)})}", None)
    budget = model.context_tokens - model.reply_tokens - _reserve(picture, elements) - text_tokens(prompt)
    budget -= text_tokens(as_json({"tools": tools_of(model, session.lang)})) if model.tools else 0
    budget -= text_tokens(session.task) + text_tokens("字" * LONGEST_OBSERVATION) + 150  # of the newest message
    newest = _user(f"** Screen Info **\n\n{as_json(info)}", picture)
    return [system, opening, *history(session, model, budget), newest]


def _reserve(picture: Picture | None, elements: Sequence[Reading] | None) -> int:
    # Fixed amounts: what is condensed must depend on the past alone, or it would change back and forth.
    pictures = max(PICTURE_TOKENS, picture_tokens(picture.image.size)) if picture is not None else PICTURE_TOKENS
    return pictures + (ELEMENTS_TOKENS if elements is not None else 0)


def _user(text: str, picture: Picture | None) -> Message:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if picture is not None:
        parts.insert(0, {"type": "image_url", "image_url": {"url": _pictures.url(picture)}})
    return {"role": "user", "content": parts}


def _elements(readings: Sequence[Reading], size: tuple[int, int]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    room = ELEMENTS_TOKENS
    for reading in sorted(readings, key=lambda r: (r.box.top, r.box.left)):
        if not reading.text.strip() and not reading.role:
            continue
        center = reading.box.center
        x, y = Point(max(0, center.x), max(0, center.y)).to_relative(size)
        entry: dict[str, Any] = {"text": cut(reading.text, LONGEST_TEXT), "x": x, "y": y}
        if reading.role:
            entry["role"] = reading.role
        room -= text_tokens(as_json(entry)) + 2
        if room < 0:
            break
        listed.append(entry)
    return listed


class _Ending(BaseModel):
    """The arguments of a finish. Success is not among them: the model tells it by the tool that it calls."""

    message: str


_KINDS: Mapping[str, type[BaseModel]] = {
    "Launch": types.Launch,
    "Tap": types.Tap,
    "Type": types.Type,
    "Type_Name": types.TypeName,
    "Swipe": types.Swipe,
    "Long_Press": types.LongPress,
    "Double_Tap": types.DoubleTap,
    "Back": types.Back,
    "Home": types.Home,
    "Wait": types.Wait,
    "Take_over": types.TakeOver,
    "Interact": types.Interact,
    "Note": types.Note,
    "Call_API": types.CallAPI,
    "GET_KNOWLEDGE_DATA": types.GetKnowledgeData,
    "finish": _Ending,
    "Abort": _Ending,
}


def tools(described: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return one function for each of ``described`` (name → example, what it does), in its order.

    The parameters are the JSON schema of the action's fields. A call is read in the json dialect as ``{"action": name,
    "arguments": {…}}``. Raises KeyError for an unknown name.
    """
    return [
        {"type": "function", "function": {"name": name, "description": says, "parameters": _parameters(_KINDS[name])}}
        for name, (_, says) in described.items()
    ]


def _parameters(kind: type[BaseModel]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    properties = {name: _plain(part) for name, part in schema.get("properties", {}).items() if name != "kind"}
    required = [name for name in schema.get("required", ()) if name != "kind"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Remove the parts that endpoints refuse: titles, defaults, and the item-wise form of a pair."""
    if "anyOf" in part:  # an optional field
        part = next(choice for choice in part["anyOf"] if choice.get("type") != "null")
    if "prefixItems" in part:
        number = {key: value for key, value in part["prefixItems"][0].items() if key != "title"}
        return {"type": "array", "items": number, "minItems": 2, "maxItems": 2}
    return {key: value for key, value in part.items() if key not in {"title", "default"}}
