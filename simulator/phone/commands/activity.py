"""``am`` and ``monkey``: starting, stopping and telling apps."""

from __future__ import annotations

import re

from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command, option
from simulator.phone.commands.intents import Intent, read_intent
from simulator.phone.port import InstalledApp, ShellPhone

_HOME_CATEGORY = "android.intent.category.HOME"
_SETTINGS = "com.android.settings"


def component(app: InstalledApp) -> str:
    """``com.tencent.mobileqq/.activity.SplashActivity``"""
    return f"{app.package}/{short_activity(app.package, app.activity)}"


def short_activity(package: str, activity: str) -> str:
    return activity.removeprefix(package) if activity.startswith(package + ".") else activity


def whole_activity(package: str, activity: str) -> str:
    return package + activity if activity.startswith(".") else activity


@command("am")
async def am(call: Call) -> int:
    verb = call.shifted()
    if verb in {"start", "start-activity"}:
        return await _start(call)
    if verb == "broadcast":
        return await _broadcast(call)
    if verb in {"force-stop", "kill", "stop-app"}:
        packages = _without_user(call.arguments)
        if not packages:
            raise JavaFailure("java.lang.IllegalArgumentException", f'Argument expected after "{verb}"')
        await call.phone.force_stop(packages[0])
        return 0
    if verb in {"get-current-user"}:
        call.line("0")
        return 0
    if verb in {"kill-all", "startservice", "start-service", "start-foreground-service", "stopservice"}:
        return 0
    call.err(f"Error: unknown command '{verb}'\n" if verb else "Activity manager (activity) commands:\n")
    return 255


def _without_user(arguments: list[str]) -> list[str]:
    rest = list(arguments)
    while rest[:1] == ["--user"]:
        del rest[:2]
    return rest


async def _start(call: Call) -> int:
    intent = read_intent(call, call.arguments)
    call.line(f"Starting: {intent}")
    target = _target(call.phone, intent)
    if intent.component and target is None:
        shown = intent.component
        raise CommandFailure(f"Error type 3\nError: Activity class {{{shown}}} does not exist.")
    if intent.stop_first and target:
        await call.phone.force_stop(target)
    if intent.data and not intent.component:
        restricted = bool(intent.package) and intent.package not in call.phone.apps
        started = not restricted and await call.phone.open_url(intent.data, intent.package or None)
    elif _HOME_CATEGORY in intent.categories:
        await call.phone.key("HOME")
        started = True
    else:
        started = target is not None and await call.phone.launch(target)
    if not started:
        raise CommandFailure(f"Error: Activity not started, unable to resolve {intent}")
    if intent.wait:
        window = call.phone.window()
        call.line("Status: ok\nLaunchState: COLD")
        call.line(
            f"Activity: {window.package or target}/{window.activity or ''}\nTotalTime: 120\nWaitTime: 125\nComplete"
        )
    return 0


def _target(phone: ShellPhone, intent: Intent) -> str | None:
    """The package that an intent without data starts; None where there is none."""
    if intent.component:
        package, _, activity = intent.component.partition("/")
        known = phone.apps.get(package)
        same = known is not None and whole_activity(package, activity) == whole_activity(package, known.activity)
        return package if same else None
    if intent.package:
        found = phone.apps.get(intent.package)
        return intent.package if found and found.launchable else None
    if intent.action.startswith("android.settings.") and _SETTINGS in phone.apps:
        return _SETTINGS
    return None


async def _broadcast(call: Call) -> int:
    intent = read_intent(call, call.arguments)
    shown = str(intent).replace(" (has extras)", "").replace(" }", " flg=0x400000")
    call.line(f"Broadcasting: {shown}{' (has extras)' if intent.extras else ''} }}")
    package = intent.package or intent.component.partition("/")[0] or None
    await call.phone.broadcast(intent.action, intent.extras, package)
    call.line("Broadcast completed: result=0")
    return 0


@command("monkey")
async def monkey(call: Call) -> int:
    """``monkey -p PKG [-c CATEGORY] 1`` as launchers of apps use it: brings the app to the front."""
    package = option(call.arguments, "-p")
    call.err("".join(f"  bash arg: {argument}\n" for argument in call.arguments))
    if not call.arguments or not re.fullmatch(r"\d{1,6}", call.arguments[-1], re.ASCII):
        raise CommandFailure("** Error: Count not specified", 255)
    found = call.phone.apps.get(package or "")
    if found is None or not found.launchable or not await call.phone.launch(found.package):
        raise CommandFailure("** No activities found to run, monkey aborted.", 252)
    call.line("Events injected: 1")
    call.line("## Network stats: elapsed time=12ms (0ms mobile, 0ms wifi, 12ms not connected)")
    return 0
