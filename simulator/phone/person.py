"""A person who holds the virtual phone: real touches, whatever adb is doing meanwhile."""

from __future__ import annotations

from typing import Protocol

from simulator.phone.panel import TouchPanel
from simulator.phone.scenario import EventPart
from simulator.phone.widgets import WIDTH, Element, TextField

_KEYS_AT = (0.5, 0.82)  # the place of a keyboard's keys, as shares of the screen


class Held(Protocol):
    """The phone, as the one who holds it has it. Places in units."""

    panel: TouchPanel

    @property
    def height(self) -> int: ...

    def log(self, what: str, detail: str = "") -> None: ...

    def elements(self) -> list[Element]:
        """Return the elements on the screen now, the topmost last."""

    def press_at(self, x: float, y: float) -> Element | None: ...

    def uncover(self) -> None:
        """Turn the screen on, unlock it, and remove shade and dialog."""

    def show_chat(self, key: str) -> None:
        """Bring the contact's chat to the front."""

    def chat_field(self) -> TextField | None:
        """Return the input of the chat in front."""

    def focus_on(self, field: TextField | None) -> None: ...


def act(phone: Held, event: EventPart) -> None:
    """Carry out a ``person_…`` event."""
    match event.do:
        case "person_tap":
            _tap(phone, event)
        case "person_open":
            phone.log("person_open", event.contact)
            _touch(phone, 0.5, 0.5)
            phone.uncover()
            phone.show_chat(event.contact)
        case "person_type":
            _type(phone, event.text)


def _tap(phone: Held, event: EventPart) -> None:
    place = _place(phone, event)
    if place is None:
        phone.log("person_missed", event.on)  # the target of the tap is not on the screen
        return
    x, y = place
    phone.log("person_tap", event.on or f"{x:.0f},{y:.0f}")
    _touch(phone, x / WIDTH, y / phone.height)
    phone.press_at(x, y)


def _place(phone: Held, event: EventPart) -> tuple[float, float] | None:
    """Return the place of an event in units; None if its target is not on the screen."""
    if event.x is not None and event.y is not None:
        return event.x * WIDTH / 1000, event.y * phone.height / 1000
    for element in reversed(phone.elements()):
        box = element.visible()
        if box is not None and event.on in (element.text, element.description):
            return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return None


def _type(phone: Held, text: str) -> None:
    """Type into the chat in front, after the present draft. It is not a client's typing, so it is not reported as
    that.
    """
    field = phone.chat_field()
    phone.log("person_type", text)
    _touch(phone, *_KEYS_AT)
    if field is not None:
        phone.focus_on(field)
        field.add(text)


def _touch(phone: Held, x: float, y: float) -> None:
    width, height = phone.panel.size
    phone.panel.touch(x * width, y * height)
