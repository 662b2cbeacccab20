"""Cards in a terminal."""

from __future__ import annotations

import re
import unicodedata

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from bot.chat.cards import Card

# Without those that join what belongs together, as in an emoji.
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

STYLES = {"plain": "", "quote": "bold", "code": "cyan"}


def harmless(text: str) -> str:
    """``text`` without control characters, and marks of direction: what a customer or a screen wrote must not steer the
    terminal, nor turn a line round.
    """
    return "".join(char for char in _TURNS.sub("", text) if char in "\n\t" or unicodedata.category(char) != "Cc")


def panel(card: Card, *, style: str = "cyan") -> Panel:
    """The card as a box; what it holds is text, never markup.

    Buttons are numbered, to be answered by their number; one's own words are simply typed, so they have no button, and
    a new picture of the phone has no place here.
    """
    lines = []
    for line in card.lines:
        text = Text()
        if line.label:
            text.append(f"{harmless(line.label)}: ", style="dim")
        text.append(harmless(line.text), style=STYLES[line.kind])
        lines.append(text)
    buttons = [button for row in card.buttons for button in row if not button.action.startswith(("own:", "look:"))]
    for number, button in enumerate(buttons, start=1):
        label = harmless(button.label).removeprefix(f"{number}. ")
        lines.append(Text(f"  [{number}] {label}", style="yellow"))
    return Panel(Group(*lines), title=Text(harmless(card.title), style="bold"), border_style=style, title_align="left")
