"""Renders cards in a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.panel import Panel

from bot.channels.chat.cards import Card, colon_of, separator
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Text

STYLES = {"plain": "", "quote": "bold", "code": "cyan", "secret": "cyan"}


def before(label: str, words: Texts) -> str:
    """Return a label with its separator; "" for no label."""
    return label + separator(label, words.get("common.colon")) if label else ""


def panel(card: Card, *, style: str = "cyan") -> Panel:
    """Return the card as a box; its contents are text, never markup.

    Buttons are numbered, to be answered by number. A button for own words is left out, because they are simply typed,
    and so is one for a new picture of the phone.
    """
    lines = []
    for line in card.lines:
        text, said = Text(), line.text
        if line.label:
            text.append(line.label + separator(line.label, colon_of(card.title, line.label)), style="dim")
            if line.kind == "quote" and "\n" in said:  # several things of one kind: the label is a heading of all
                said = "".join(f"\n  {row}" for row in said.split("\n"))
        text.append(said, style=STYLES[line.kind])
        lines.append(text)
    buttons = [button for row in card.buttons for button in row if not button.action.startswith(("own:", "look:"))]
    for number, button in enumerate(buttons, start=1):
        label = button.label.removeprefix(f"{number}. ")
        lines.append(Text(f"  [{number}] {label}", style="yellow"))
    return Panel(Group(*lines), title=Text(card.title, style="bold"), border_style=style, title_align="left")
