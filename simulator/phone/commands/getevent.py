"""``getevent``: the input devices, and what they report while somebody listens."""

from __future__ import annotations

from contextlib import aclosing

from simulator.phone.commands.base import Call, CommandFailure, command, number
from simulator.phone.panel import InputEvent, TouchPanel

KEYS, PANEL = "/dev/input/event0", "/dev/input/event2"
_TYPES = {0: "EV_SYN", 1: "EV_KEY", 3: "EV_ABS"}
_CODES = {
    (0, 0): "SYN_REPORT",
    (1, 0x14A): "BTN_TOUCH",
    (3, 0x35): "ABS_MT_POSITION_X",
    (3, 0x36): "ABS_MT_POSITION_Y",
    (3, 0x39): "ABS_MT_TRACKING_ID",
}
_USAGE = "Usage: getevent [-l] [-q] [-c count] [-p] [device]"


@command("getevent")
async def getevent(call: Call) -> int:
    flags, count, devices = _options(call)
    panel = call.phone.touch_panel()
    if panel is None:
        for name in devices or [KEYS, PANEL]:
            if devices or "p" in flags:
                call.err(f"could not open {name}, Permission denied\n")
        if devices:
            return 1
    if "p" in flags:
        if panel is not None:
            call.out(_possible(panel, labels="l" in flags))
        return 0
    if devices and devices[0] not in {KEYS, PANEL}:
        raise CommandFailure(f"could not open {devices[0]}, No such file or directory")
    if "q" not in flags and not devices and panel is not None:
        await _say(call, f'add device 1: {KEYS}\n  name:     "gpio-keys"\n')
        await _say(call, f'add device 2: {PANEL}\n  name:     "touchpanel"\n')
    # The keys never report anything here; who may read nothing, or listens to them, waits without an end.
    silent = panel is None or devices == [KEYS]
    await _follow(
        call, TouchPanel((1, 1)) if silent or panel is None else panel, flags, count, "" if devices else f"{PANEL}: "
    )
    return 0


def _options(call: Call) -> tuple[set[str], int, list[str]]:
    flags: set[str] = set()
    devices: list[str] = []
    count = 0
    arguments = list(call.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "-c" and arguments:
            count = number(call, arguments.pop(0))
        elif argument.startswith("-") and set(argument[1:]) <= set("lqpt"):
            flags |= set(argument[1:])
        elif argument.startswith("-") or devices:  # the real one takes a single device, too
            raise CommandFailure(_USAGE)
        else:
            devices.append(argument)
    return flags, count, devices


async def _follow(call: Call, panel: TouchPanel, flags: set[str], count: int, prefix: str) -> None:
    seen = 0
    async with aclosing(panel.events()) as stream:
        async for events in stream:
            shown = events[: count - seen] if count else events
            await _say(call, "".join(prefix + _line(event, labels="l" in flags) for event in shown))
            seen += len(shown)
            if count and seen >= count:
                return


def _line(event: InputEvent, *, labels: bool) -> str:
    if not labels:
        return f"{event.type:04x} {event.code:04x} {event.value:08x}\n"
    value = f"{event.value:08x}"
    if (event.type, event.code) == (1, 0x14A):
        value = "DOWN" if event.value else "UP"
    return f"{_TYPES[event.type]:<12} {_CODES[event.type, event.code]:<20} {value:<20}\n"


async def _say(call: Call, text: str) -> None:
    if call.live is None:
        call.out(text)
    else:
        await call.live(text.encode())


def _possible(panel: TouchPanel, *, labels: bool) -> str:
    width, height = panel.size
    axes = [(0x2F, "ABS_MT_SLOT", 9), (0x30, "ABS_MT_TOUCH_MAJOR", 255), (0x35, "ABS_MT_POSITION_X", width - 1)]
    axes += [(0x36, "ABS_MT_POSITION_Y", height - 1), (0x39, "ABS_MT_TRACKING_ID", 65535)]
    named = [(f"{name:<21}" if labels else f"{code:04x} ", most) for code, name, most in axes]
    lines = [f"{name} : value 0, min 0, max {most}, fuzz 0, flat 0, resolution 0\n" for name, most in named]
    keys = "KEY_VOLUMEDOWN        KEY_VOLUMEUP          KEY_POWER" if labels else "0072  0073  0074"
    return (
        f'add device 1: {KEYS}\n  name:     "gpio-keys"\n  events:\n    KEY (0001): {keys}\n'
        "  input props:\n    <none>\n"
        f'add device 2: {PANEL}\n  name:     "touchpanel"\n  events:\n'
        f"    KEY (0001): {'BTN_TOUCH' if labels else '014a'}\n"
        f"    ABS (0003): {'                '.join(lines)}"
        f"  input props:\n    {'INPUT_PROP_DIRECT' if labels else '0001'}\n"
    )
