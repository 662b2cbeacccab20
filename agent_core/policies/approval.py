"""A person's approval of one tap. It holds for exactly the tap they were shown, not for similar ones."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from PIL import Image

from agent_core.actions.types import Action, Tap
from agent_core.geometry import Point
from agent_core.policies.base import Situation, near
from agent_core.session import Approval, Question, Session

# How long an approval lasts: enough to find the place again if the phone was given away while the question was open.
KEPT_STEPS = 10
AROUND = 0.2  # of the height, above and below the tap: the text of a dialog there says what its button does
STATUS_BAR = 0.045  # of the height
CELLS = (12, 6)  # of a coarse picture, one hexadecimal digit for each cell: 16 grey levels
PULSE = 2  # grey levels that a cell may differ by if the button is the same
# Times are ignored: a countdown does not make it another page.
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?|\d+\s*(?:秒|s\b)")


def asked_about(tap: Tap, situation: Situation) -> dict[str, Any]:
    """Return the data that binds a question to this tap: the tap, the app and its surroundings."""
    place = place_of(tap.element, situation)
    return {"tap": tap.model_dump(mode="json"), "package": situation.window.package, "place": place}


def given(session: Session, question: Question) -> Approval:
    """Return the approval that a person's yes to ``question`` gives."""
    data, until = question.data, len(session.steps) + KEPT_STEPS
    tap = Tap.model_validate(data["tap"])
    place = str(data.get("place") or "")
    return Approval(element=tap.element, package=data.get("package"), place=place, until=until)


def withdraw(session: Session, question: Question) -> None:
    """Withdraw an earlier approval for the same app, because a person said no to ``question``."""
    if session.approval is not None and session.approval.package == question.data.get("package"):
        session.approval = None


def meant(session: Session, action: Action | None) -> bool:
    """Tell whether ``action`` may be the tap that a person allowed, because it goes to the same point."""
    allowed = session.approval
    return allowed is not None and isinstance(action, Tap) and near(action.element, allowed.element)


def holds(session: Session, action: Action, situation: Situation) -> bool:
    """Tell whether a person has allowed this very tap: same point, same app, same surroundings."""
    allowed = session.approval
    if allowed is None or not isinstance(action, Tap) or not meant(session, action):
        return False
    if len(session.steps) > allowed.until or allowed.package != situation.window.package:
        return False
    target = situation.target(action.element)
    same = not target or target == situation.target(allowed.element)
    return same and _alike(place_of(allowed.element, situation), allowed.place)


def place_of(pair: tuple[int, int], situation: Situation) -> str:
    """Return a short digest of the surroundings of a point (0–1000).

    It is made of the texts there. If no text was read, it is a coarse picture, which ``_alike`` compares with some
    tolerance because a button may pulse for ever. "" if there is no picture either.
    """
    width, height = situation.size
    point = Point.from_relative(pair, situation.size)
    texts = sorted(
        "".join(_TIME.sub("", reading.text).split())
        for reading in situation.readings
        if reading.box.bottom > STATUS_BAR * height and abs(reading.box.center.y - point.y) <= AROUND * height
    )
    if any(texts):
        return sha256("\n".join(texts).encode(errors="replace")).hexdigest()[:16]
    if situation.frame is None:
        return ""
    reach = height // 40
    box = (max(0, point.x - 4 * reach), max(0, point.y - reach), point.x + 4 * reach, point.y + reach)
    around = situation.frame.image.crop((*box[:2], min(width, box[2]), min(height, box[3])))
    cells = around.convert("L").resize(CELLS, Image.Resampling.BOX).tobytes()
    return "".join(f"{cell // 16:x}" for cell in cells)


def _alike(one: str, other: str) -> bool:
    """Tell whether two places are the same. Coarse pictures are if all their cells are about equally bright."""
    if len(one) != len(other) or len(one) != CELLS[0] * CELLS[1]:
        return one == other
    return all(abs(int(a, 16) - int(b, 16)) <= PULSE for a, b in zip(one, other, strict=True))
