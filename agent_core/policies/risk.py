"""Which touch may pay, delete, add, call, install or grant: by the words of a control, and by what a dialog asks."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agent_core.actions.types import Action
from agent_core.apps.profile import AppProfile
from agent_core.geometry import Point
from agent_core.perception.popups import Dialog, dialog_in, popup_in
from agent_core.perception.readings import Reading
from agent_core.policies.base import Situation, bare, touched
from agent_core.policies.controls import control_at, distance, grown, of_chat, rows_of

LONGEST_LABEL = 20  # Han letters, or twice as many Latin ones: what is longer is running text and no control
BESIDE = 8  # pixels around the words of a refusal, if no tree tells its button
_IN_A_ROW = 4  # letters more than the word: what stands in a row of a list is a button only if it is no longer


@cache
def _risky_file() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("risky.toml").read_text(encoding="utf-8"))


@cache
def risky_words() -> tuple[str, ...]:
    """Words on buttons, in any app, that pay, delete, add, call, install or grant rights."""
    return tuple(word for name, listed in _risky_file().items() if name != "refusals" for word in listed)


@cache
def _refusals() -> frozenset[str]:
    return frozenset(bare(text) for text in _risky_file()["refusals"]["texts"])


def risk_at(proposal: Action, situation: Situation, app: AppProfile | None, named: Sequence[Reading]) -> str:
    """Return the words of what a touch may click that is a risk; "" if it may click no such thing.

    ``app``: whose own risky words count, too. ``named``: what names the place that is touched. A button is more than
    its words: all of its area counts. On a dialog that asks about a risk, every button is one but a known refusal.
    """
    pair = touched(proposal, situation.size)
    if pair is None:
        return ""
    point = Point.from_relative(pair, situation.size)
    risky = _Risky((*risky_words(), *(app.risky if app else ())), situation.gate.contact)
    dialog = dialog_in(situation.readings, situation.nodes, situation.frame, situation.size)
    rows = [] if dialog is not None else rows_of(situation)
    for one in named:
        if risky.in_a_row(one) if of_chat(one, rows) else risky.is_control(one):
            return one.text
    if dialog is not None and dialog.box.contains(point):
        asked = next((one.text for one in dialog.texts if risky.is_meant(one)), "")
        if asked:
            return "" if _refuses(point, situation, dialog) else asked
    return control_at(point, situation, risky.is_control, rows)


def _refuses(point: Point, situation: Situation, dialog: Dialog) -> bool:
    """Return whether a point of a dialog is on the words or the button that agree to nothing.

    Words of a refusal that the dialog itself says are in doubt: "Close the account?" is agreed to by "Close".
    """
    popup = popup_in(situation.window, situation.readings, situation.frame)
    if popup is not None and popup.box.contains(point):
        return True
    under = min(dialog.texts, key=lambda one: (distance(one.box, point), one.box.width * one.box.height))
    around = [n.box for n in situation.nodes or () if n.clickable and n.box.contains(point)]
    button = min(around, key=lambda box: box.width * box.height, default=grown(under.box, BESIDE, BESIDE))
    refusal, said = bare(under.text), {bare(one.text) for one in dialog.texts}
    named = {bare(one.text) for one in dialog.texts if button.contains(one.box.center)}
    in_doubt = any(refusal in text for text in said - {refusal})
    return button.contains(point) and named == {refusal} and refusal in _refusals() and not in_doubt


@dataclass(frozen=True, slots=True)
class _Risky:
    """``words``: those that name a risk. ``contact``: a name that is no button, whatever it says."""

    words: Sequence[str]
    contact: str

    def is_control(self, one: Reading) -> bool:
        """Return whether a reading is the words of a control that is a risk."""
        text = one.text.strip()
        length = sum(1 if char > "\u2e80" else 0.5 for char in text)
        return (one.role == "button" or length <= LONGEST_LABEL) and self.is_meant(one) and self._no_refusal(text)

    def in_a_row(self, one: Reading) -> bool:
        """Return the same for what stands in a row of a list of chats: a customer who asks how to pay is no button."""
        text = bare(one.text)
        near = any(bare(word) in text and len(text) <= len(bare(word)) + _IN_A_ROW for word in self.words)
        return near and self._no_refusal(text)

    def is_meant(self, one: Reading) -> bool:
        """Return whether a reading says something of a risk."""
        text = bare(one.text)
        return text != bare(self.contact) and any(bare(word) in text for word in self.words)

    @staticmethod
    def _no_refusal(text: str) -> bool:
        return bare(text) not in _refusals()
