"""Cards in a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from bot.chat.cards import Card

STYLES = {"plain": "", "quote": "bold", "code": "cyan"}


def panel(card: Card, *, style: str = "cyan") -> Panel:
    """The card as a box; what it holds is text, never markup. Buttons are numbered, to be answered by their number."""
    lines = []
    for line in card.lines:
        text = Text()
        if line.label:
            text.append(f"{line.label}: ", style="dim")
        text.append(line.text, style=STYLES[line.kind])
        lines.append(text)
    buttons = [button for row in card.buttons for button in row]
    for number, button in enumerate(buttons, start=1):
        lines.append(Text(f"  [{number}] {button.label}", style="yellow"))
    return Panel(Group(*lines), title=Text(card.title, style="bold"), border_style=style, title_align="left")
