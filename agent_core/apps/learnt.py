"""Facts learnt about an app on one phone, in addition to the app's profile, which is for every phone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import structlog

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device
from agent_core.errors import DeviceError

log = structlog.get_logger(__name__)

SendsBy = Literal["button", "enter", "keyboard_key"]
# Parts that a person may report as read wrongly: the title, whose a message is, words or kinds, the input or Send,
# the list.
Part = Literal["title", "sides", "words", "input", "list", "other"]
PARTS: tuple[Part, ...] = get_args(Part)


_COLOR_TOLERANCE = 14  # levels of a channel: another theme is farther away, a compressed picture is closer
_TOLERANCE = 0.03  # of the screen's width
MOST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class AppLook:
    """The look of an app's chat page: its theme and its layout. "" and None mean unknown.

    ground, mine, theirs: the colours of the page, of our own bubbles and of the other side's, as ``#rrggbb``.
    header: the header's lower edge.
    bar: the height from the input bar's upper edge to the screen's end, without a keyboard.
    avatar_left, avatar_size: of the other side's avatars. These and the two before are fractions of the screen's width.
    send_always: whether Send is visible while the input is empty.
    """

    ground: str = ""
    mine: str = ""
    theirs: str = ""
    header: float | None = None
    bar: float | None = None
    avatar_left: float | None = None
    avatar_size: float | None = None
    send_always: bool | None = None


@dataclass(frozen=True, slots=True)
class LearntApp:
    """One app in one version, as it was found on one phone.

    app: the profile's key.
    sends_by: what sends a text if no Send is visible after typing: "enter", the Enter key; "keyboard_key", the key of
    the keyboard that says 发送; "button", nothing but a visible button.
    looks: the looks that a person confirmed, the newest last; () if nobody has shown us the app.
    tree: how much the accessibility tree says: full, no_texts or empty.
    confirmed_by, confirmed_at: the person, and the time in ISO format.
    wrong: parts that a person said are read wrongly. They are doubtful on every page until the app is learnt again.
    """

    app: str
    version: str
    sends_by: SendsBy = "button"
    looks: tuple[AppLook, ...] = ()
    tree: str = ""
    confirmed_by: str = ""
    confirmed_at: str = ""
    wrong: tuple[Part, ...] = ()

    def corrected(self, part: Part) -> LearntApp:
        """Add a part that is read wrongly. If that is whose the messages are, their colours are no longer used."""
        looks = tuple(replace(look, mine="", theirs="") for look in self.looks) if part == "sides" else self.looks
        return replace(self, looks=looks, wrong=tuple(dict.fromkeys((*self.wrong, part))))

    def with_look(self, look: AppLook) -> LearntApp:
        """Add a look that a person confirmed, in place of a similar one; only the newest are kept."""
        others = [known for known in self.looks if _differences(known, look)]
        return replace(self, looks=(*others, look)[-MOST_LOOKS:])

    def on(self, profile: AppProfile) -> AppProfile:
        """Return ``profile`` with what this phone has shown: bubble colours before the general ones, wrong parts."""
        mine = [look.mine for look in reversed(self.looks) if look.mine]
        theirs = [look.theirs for look in reversed(self.looks) if look.theirs]
        return profile.model_copy(
            update={
                "my_bubble_colors": tuple(dict.fromkeys([*mine, *profile.my_bubble_colors])),
                "said_wrong": self.wrong,
                "their_bubble_colors": tuple(dict.fromkeys([*theirs, *profile.their_bubble_colors])),
            }
        )


def differs(learnt: LearntApp, seen: AppLook) -> list[str]:
    """Return the fields of AppLook in which a page differs from the most similar look that was learnt.

    A field that is unknown on one side is not a difference, and neither is the other side's colour: a customer with a
    bubble of their own does not change the layout. [] if nothing was learnt.
    """
    return min((_differences(look, seen) for look in learnt.looks), key=len, default=[])


def _differences(one: AppLook, other: AppLook) -> list[str]:
    found = [
        name
        for name in ("ground", "mine")
        if getattr(one, name) and getattr(other, name) and _apart(getattr(one, name), getattr(other, name))
    ]
    for name in ("header", "bar", "avatar_left", "avatar_size"):
        was, now = getattr(one, name), getattr(other, name)
        if was is not None and now is not None and abs(was - now) > _TOLERANCE:
            found.append(name)
    if None not in (one.send_always, other.send_always) and one.send_always is not other.send_always:
        found.append("send_always")
    return found


def _apart(one: str, other: str) -> bool:
    return any(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) > _COLOR_TOLERANCE for i in (1, 3, 5))


async def version_of(device: Device, profile: AppProfile) -> str:
    """Return the version of the app on this phone; "" if the phone does not say."""
    try:
        for package in profile.packages:  # one for each system
            if version := await device.app_version(package):
                return version
        return ""
    except DeviceError as error:
        log.info("app_version_unknown", app=profile.key, error=str(error))
        return ""
