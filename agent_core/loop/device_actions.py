"""Acts on a phone, one for each action that is one: nothing is asked, nothing is judged."""

from __future__ import annotations

from agent_core.actions.types import (
    Action,
    Back,
    DoubleTap,
    Home,
    Launch,
    LongPress,
    PressKey,
    Swipe,
    Tap,
    Type,
    TypeName,
)
from agent_core.apps.names import packages_named, resolve_app
from agent_core.devices.base import Device, Key
from agent_core.errors import ActionFailed
from agent_core.geometry import Point
from agent_core.texts import Lang, say

KEYS = {"enter": Key.ENTER, "app_switch": Key.APP_SWITCH}


async def do_on(device: Device, action: Action, size: tuple[int, int], lang: Lang) -> None:
    """Do ``action``; ``size`` (pixels) is that of the picture its points belong to.

    ActionFailed where there is no such app, or it is no act on the phone; DeviceError as the device says.
    """
    match action:
        case Launch(app=app):
            await _launch(device, app, lang)
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
        case Back():
            await device.key(Key.BACK)
        case Home():
            await device.key(Key.HOME)
        case PressKey(key=key):
            await device.key(KEYS[key])
        case _:
            raise ActionFailed(f"{action.kind} is not an act on the phone.")


async def _launch(device: Device, app: str, lang: Lang) -> None:
    package = await installed(device, app)
    if package is None:
        raise ActionFailed(say(lang, "run.app_missing" if packages_named(app) else "run.app_unknown", app=app))
    await device.launch(package)


async def installed(device: Device, app: str) -> str | None:
    """Return the package of ``app`` on the phone, by whatever name it is called; None if it is not installed."""
    return resolve_app(app, await device.packages()) or resolve_app(app, await device.packages(fresh=True))
