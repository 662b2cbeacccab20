"""``ime`` and ``settings``."""

from __future__ import annotations

from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command

_ENABLED = ("secure", "enabled_input_methods")
_NAMESPACES = frozenset({"system", "secure", "global"})


def _enabled(call: Call) -> list[str]:
    """Every input method is enabled until the setting says which are."""
    stored = call.phone.settings.get(_ENABLED)
    if stored is None:
        return list(call.phone.input_methods)
    return [name for name in call.phone.input_methods if name in stored.split(":")]


@command("ime")
async def ime(call: Call) -> int:
    verb = call.shifted()
    if verb == "list":
        call.phone.check_may_change("ime list")
        names = list(call.phone.input_methods) if "-a" in call.arguments else _enabled(call)
        for name in names:
            call.out(f"{name}\n" if "-s" in call.arguments else f"{name}:\n  mId={name} mSettingsActivityName=null\n")
        return 0
    if verb == "reset":
        call.phone.set_setting(*_ENABLED, None)
        call.line("Input methods reset to their defaults for user #0")
        return 0
    if verb not in {"set", "enable", "disable"}:
        call.err(f"Unknown command: {verb}\n" if verb else "ime <command>:\n")
        return 255
    names = [argument for argument in call.arguments if not argument.startswith("--") and argument != "0"]
    if not names:
        raise JavaFailure("java.lang.IllegalArgumentException", f'Argument expected after "{verb}"')
    call.phone.check_may_change("ime")
    return _choose(call, names[0]) if verb == "set" else _allow(call, names[0], allowed=verb == "enable")


def _choose(call: Call, name: str) -> int:
    if name not in _enabled(call) or not call.phone.choose_input_method(name):
        raise CommandFailure(f"Unknown input method {name} cannot be selected for user #0", 255)
    call.line(f"Input method {name} selected for user #0")
    return 0


def _allow(call: Call, name: str, *, allowed: bool) -> int:
    if name not in call.phone.input_methods:
        raise CommandFailure(f"Unknown input method {name} cannot be {call.verb}d for user #0", 255)
    enabled = _enabled(call)
    already = (name in enabled) == allowed
    if not already:
        kept = [other for other in call.phone.input_methods if (other in enabled or other == name) and other != name]
        call.phone.set_setting(*_ENABLED, ":".join([*kept, name] if allowed else kept))
    when = "already" if already else "now"
    call.line(f"Input method {name}: {when} {call.verb}d for user #0")
    return 0


@command("settings")
async def settings(call: Call) -> int:
    arguments = list(call.arguments)
    if arguments[:1] == ["--user"]:
        del arguments[:2]
    verb = arguments.pop(0) if arguments else ""
    call.verb = verb
    if arguments[:1] == ["--user"]:
        del arguments[:2]
    needed = {"get": 2, "put": 3, "delete": 2, "list": 1}.get(verb)
    if needed is None or len(arguments) < needed or arguments[0] not in _NAMESPACES:
        what = f"Invalid namespace '{arguments[0]}'" if needed and arguments else "Bad arguments"
        raise CommandFailure(what, 255)
    namespace = arguments[0]
    if verb in {"put", "delete"}:
        call.phone.check_may_change("settings")
    if verb == "list":
        for (place, key), value in sorted(call.phone.settings.items()):
            call.out(f"{key}={value}\n" if place == namespace else "")
    elif verb == "get":
        call.line(call.phone.settings.get((namespace, arguments[1]), "null"))
    elif verb == "put":
        call.phone.set_setting(namespace, arguments[1], arguments[2])
    else:
        known = (namespace, arguments[1]) in call.phone.settings
        call.phone.set_setting(namespace, arguments[1], None)
        call.line(f"Deleted {int(known)} rows")
    return 0
