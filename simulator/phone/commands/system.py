"""``getprop``, ``svc``, ``cmd``, ``logcat``, ``ip``, ``ps``: the system and its services."""

from __future__ import annotations

import asyncio

from simulator.phone.commands.base import COMMANDS, Call, CommandFailure, command

_STAY_ON = {"true": "7", "false": "0", "ac": "1", "usb": "2", "wireless": "4"}
# Services that `cmd` reaches and that have a command of their own.
_SERVICES = {
    "package": "pm",
    "activity": "am",
    "input_method": "ime",
    "settings": "settings",
    "window": "wm",
    "input": "input",
}


@command("getprop")
async def getprop(call: Call) -> int:
    if call.arguments:
        name, *default = call.arguments
        call.line(call.phone.properties.get(name, default[0] if default else ""))
    else:
        for name, value in sorted(call.phone.properties.items()):
            call.line(f"[{name}]: [{value}]")
    return 0


@command("setprop")
async def setprop(call: Call) -> int:
    if len(call.arguments) != 2:
        raise CommandFailure("usage: setprop NAME VALUE")
    name, value = call.arguments
    if name.startswith("ro.") or len(name) > 256 or len(value) > 91:
        raise CommandFailure(f"Failed to set property '{name}' to '{value}'.")
    call.phone.properties[name] = value
    return 0


@command("svc")
async def svc(call: Call) -> int:
    what = call.shifted()
    if what == "power" and call.arguments[:1] == ["stayon"]:
        value = _STAY_ON.get("".join(call.arguments[1:2]))
        if value is None:
            raise CommandFailure("usage: svc power stayon [true|false|usb|ac|wireless|dock]", 255)
        call.phone.set_setting("global", "stay_on_while_plugged_in", value)
        return 0
    if what in {"wifi", "data", "bluetooth", "nfc", "usb", "power"}:
        return 0
    call.err("Available commands:\n    help\n    power\n    data\n    wifi\n")
    return 0


@command("cmd")
async def cmd(call: Call) -> int:
    service = call.arguments.pop(0) if call.arguments else ""
    if service == "statusbar":
        return await _status_bar(call)
    function = COMMANDS.get(_SERVICES.get(service, ""))
    if function is not None:
        call.name = _SERVICES[service]
        return await function(call)
    if service in {"notification", "power", "display", "battery", "uimode", "appops", "clipboard", "overlay"}:
        return 0
    raise CommandFailure(f"cmd: Can't find service: {service}" if service else "cmd: No service specified; use -l", 20)


async def _status_bar(call: Call) -> int:
    verb = call.shifted()
    if verb in {"expand-notifications", "expand-settings"}:
        await call.phone.open_shade(True)
    elif verb == "collapse":
        await call.phone.open_shade(False)
    else:
        call.err(f"Unknown command: {verb}\n")
        return 255
    return 0


@command("service")
async def service(call: Call) -> int:
    if call.arguments[:1] == ["check"]:
        call.line(f"Service {' '.join(call.arguments[1:2])}: not found")
    elif call.arguments[:1] == ["list"]:
        call.line("Found 0 services:")
    else:
        raise CommandFailure("service: Service does not exist", 10)
    return 0


@command("logcat")
async def logcat(call: Call) -> int:
    """An empty log. Without ``-d``, ``-c`` or ``-g`` it follows, until it is cancelled."""
    if not {"-d", "-c", "-g", "-t"} & {argument[:2] for argument in call.arguments}:
        await asyncio.Event().wait()
    return 0


@command("ip")
async def ip(call: Call) -> int:
    if call.arguments[:1] in (["route"], ["r"]):
        call.line("192.168.1.0/24 dev wlan0 proto kernel scope link src 192.168.1.23")
    else:
        call.line(
            "21: wlan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\n"
            "    inet 192.168.1.23/24 scope global wlan0"
        )
    return 0


@command("ps")
async def ps(call: Call) -> int:
    call.line("USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME")
    package = call.phone.window().package
    if package:
        call.line(f"u0_a123       4321   612 5242880 204800 0                   0 S {package}")
    return 0


@command("pidof")
async def pidof(call: Call) -> int:
    if call.arguments[:1] == [call.phone.window().package]:
        call.line("4321")
        return 0
    return 1
