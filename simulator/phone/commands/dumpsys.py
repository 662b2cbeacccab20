"""``dumpsys`` of the services that clients read, in the words of Android 13."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from agent_core.devices.base import WindowKind
from simulator.phone.commands.activity import short_activity, whole_activity
from simulator.phone.commands.base import Call, command
from simulator.phone.commands.packages import code_path, is_system

_UID = 10123


@command("dumpsys")
async def dumpsys(call: Call) -> int:
    arguments = list(call.arguments)
    while arguments[:1] in (["-t"], ["-T"], ["--priority"]):
        del arguments[:2]
    if not arguments or arguments[0] == "-l":
        call.line("Currently running services:\n" + "\n".join(f"  {name}" for name in sorted(_SERVICES)))
        return 0
    service, *rest = arguments
    if service == "SurfaceFlinger" and rest == ["--display-id"]:
        for at, display in enumerate(call.phone.displays()):
            call.line(f'Display {display.number} (HWC display {at}): port={at} pnpId=VPH displayName="panel{at}"')
        return 0
    function = _SERVICES.get(service)
    if function is None:
        call.err(f"Can't find service: {service}\n")
        return 0
    call.arguments = rest
    function(call)
    return 0


def _id(*of: str | None) -> str:
    """A stable hexadecimal number, as the ones of windows and records are."""
    return f"{zlib.crc32('/'.join(piece or '' for piece in of).encode()) & 0xFFFFFFF:x}"


def _yes(value: bool) -> str:
    return "true" if value else "false"


# -- window and activity


def _record(call: Call) -> str | None:
    """``ActivityRecord{9d3 u0 PKG/.Activity t12}`` of the app that is in front, or under the shade or lock screen."""
    window = call.phone.window()
    if window.package is None:
        return None
    activity = short_activity(window.package, window.activity or _main_activity(call, window.package))
    return f"ActivityRecord{{{_id(window.package, activity)} u0 {window.package}/{activity} t12}}"


def _main_activity(call: Call, package: str) -> str:
    app = call.phone.apps.get(package)
    return app.activity if app else ".MainActivity"


def _focus(call: Call) -> str:
    window = call.phone.window()
    if window.kind in {WindowKind.SHADE, WindowKind.LOCK}:
        return f"Window{{{_id('shade')} u0 NotificationShade}}"
    if window.kind is WindowKind.NONE or window.package is None:
        return "null"
    activity = whole_activity(window.package, window.activity or _main_activity(call, window.package))
    return f"Window{{{_id(window.package, 'window')} u0 {window.package}/{activity}}}"


def _focus_lines(call: Call) -> None:
    told = call.phone.focus_told()
    if told != "unsaid":
        call.line(f"  mCurrentFocus={'null' if told else _focus(call)}")
        call.line(f"  mFocusedApp={_record(call) or 'null'}")


def _window(call: Call) -> None:
    part = call.arguments[0] if call.arguments else "all"
    if part in {"all", "-a", "policy", "p"}:
        _window_policy(call)
    if part in {"all", "-a", "displays", "d"}:
        _window_displays(call)
    if part in {"all", "-a", "windows", "w", "visible", "v"}:
        _window_windows(call)


def _window_policy(call: Call) -> None:
    state = call.phone.screen()
    locked = _yes(state.locked)
    call.line("WINDOW MANAGER POLICY STATE (dumpsys window policy)")
    call.line(f"    mScreenOnEarly={_yes(state.awake)} mScreenOnFully={_yes(state.awake)}")
    call.line("    KeyguardServiceDelegate")
    call.line(f"      showing={locked}\n      inputRestricted={locked}")
    call.line(f"      occluded={_yes(state.locked and call.phone.window().kind is WindowKind.APP)}")
    call.line(f"      screenState={'SCREEN_STATE_ON' if state.awake else 'SCREEN_STATE_OFF'}")
    call.line(f"      interactiveState={'INTERACTIVE_STATE_AWAKE' if state.awake else 'INTERACTIVE_STATE_SLEEP'}")
    call.line(f"    isKeyguardShowing={locked}\n      KeyguardStateMonitor\n        mIsShowing={locked}\n")


def _window_displays(call: Call) -> None:
    width, height = call.phone.size
    short, long = sorted(call.phone.size)
    call.line("WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)")
    call.line("  Display: mDisplayId=0 rootTasks=3")
    panel = "{}x{}".format(*call.phone.physical_size)
    call.line(f"    init={panel} 440dpi cur={width}x{height} app={width}x{height} rng={short}x{short}-{long}x{long}")
    _focus_lines(call)
    call.line("  DisplayPolicy")
    call.line(
        f"    mShowingDream=false mDreamingLockscreen={_yes(call.phone.screen().locked)} mDreamingSleepToken=null\n"
    )


def _window_windows(call: Call) -> None:
    call.line("WINDOW MANAGER WINDOWS (dumpsys window windows)")
    if (focus := _focus(call)) != "null":
        call.line(
            f"  Window #0 {focus}:\n    mDisplayId=0 rootTaskId=12 mSession=Session{{{_id('session')} 4321:u0a{_UID}}}"
        )
    call.line("  mGlobalConfiguration={1.0 zh-Hans-CN}")
    call.line("  mTopFocusedDisplayId=0")
    _focus_lines(call)
    keyboard = f"Window{{{_id('keyboard')} u0 InputMethod}}"
    call.line(f"  mInputMethodWindow={keyboard if call.phone.keyboard_shown() else 'null'}")


def _activity(call: Call) -> None:
    part = call.arguments[0] if call.arguments else "activities"
    record = _record(call)
    asleep = not call.phone.screen().awake or call.phone.screen().locked
    if part == "top":
        window = call.phone.window()
        if record and window.package:
            name = record.split(" ")[2]
            call.line(f"TASK {window.package} id=12 userId=0")
            call.line(
                f"  ACTIVITY {name} {_id(window.package)} pid=4321\n    mResumed={_yes(not asleep)} mStopped=false"
            )
        return
    call.line("ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\nDisplay #0 (activities from top to bottom):")
    if record:
        if not asleep:
            call.line(f"  topResumedActivity={record}")
        call.line(f"  * Task{{{_id('task')} #12 type=standard}}\n    * Hist  #0: {record}")
        if not asleep:
            call.line(f"    mResumedActivity: {record}\n  ResumedActivity: {record}")
    call.line(f"  mFocusedApp={record or 'null'}")
    locked = _yes(call.phone.screen().locked)
    call.line(
        f"  KeyguardController:\n    mKeyguardShowing={locked}\n    mAodShowing=false\n    mKeyguardGoingAway=false"
    )


# -- power, display, battery, input


def _power(call: Call) -> None:
    awake = call.phone.screen().awake
    stay = call.phone.settings.get(("global", "stay_on_while_plugged_in"), "0")
    call.line("POWER MANAGER (dumpsys power)\n\nPower Manager State:")
    call.line(f"  mWakefulness={'Awake' if awake else 'Asleep'}\n  mWakefulnessChanging=false\n  mIsPowered=true")
    call.line(f"  mStayOn={_yes(stay != '0')}\n  mStayOnWhilePluggedInSetting={stay}")
    call.line(f"  mHoldingDisplaySuspendBlocker={_yes(awake)}\n  mScreenOffTimeoutSetting=60000")
    call.line(f"Display Power: state={'ON' if awake else 'OFF'}")


def _display(call: Call) -> None:
    width, height = call.phone.size
    state = "ON" if call.phone.screen().awake else "OFF"
    turn, displays = call.phone.rotation, call.phone.displays()
    front = next((display for display in displays if display.on), displays[0])
    frame = f"Rect(0, 0 - {width}, {height})"
    call.line(
        "DISPLAY MANAGER (dumpsys display)\n  mViewports=[DisplayViewport{type=INTERNAL, valid=true, isActive=true,"
        f" displayId=0, uniqueId='local:{front.number}', physicalPort=0, orientation={turn}, logicalFrame={frame},"
        f" physicalFrame={frame}, deviceWidth={width}, deviceHeight={height}}}]"
    )
    panel = "{} x {}".format(*call.phone.physical_size)
    for display in displays:
        call.line(
            f'    DisplayDeviceInfo{{"panel": uniqueId="local:{display.number}", {panel}, modeId 1, density 440,'
            f" touch INTERNAL, rotation 0, type INTERNAL, state {'ON' if display.on else 'OFF'}}}"
        )
    call.line(f"  mGlobalDisplayState={state}\nDisplay States: size=1\n  Display Id=0\n  Display State={state}")
    call.line(f"Display Power Controller:\n  mScreenState={state}")


def _battery(call: Call) -> None:
    battery = call.phone.battery
    powered = _yes(battery["status"] in {2, 5})
    call.line(f"Current Battery Service state:\n  AC powered: {powered}")
    call.line("  USB powered: false\n  Wireless powered: false")
    call.line(f"  status: {battery['status']}\n  health: 2\n  present: true\n  level: {battery['level']}")
    call.line(f"  scale: 100\n  voltage: 4210\n  temperature: {battery['temperature']}\n  technology: Li-ion")


def _input_method(call: Call) -> None:
    shown = _yes(call.phone.keyboard_shown())
    chosen = call.phone.settings.get(("secure", "default_input_method"), "null")
    call.line(f"Current Input Method Manager state:\n  Input Methods: {len(call.phone.input_methods)}")
    call.line(f"  mCurMethodId={chosen}\n  mCurId={chosen} mHaveConnection=true mBoundToMethod=true")
    call.line(f"  mShowRequested={shown} mShowExplicitlyRequested=false mShowForced=false mInputShown={shown}")


# -- notifications and packages


def _notification(call: Call) -> None:
    """Texts are hidden without ``--noredact``."""
    plain = "--noredact" in call.arguments
    call.line("Current Notification Manager state:\n  Notification List:")
    for at, note in enumerate(call.phone.notifications()):
        key = note.key or f"0|{note.package}|{at}|null|{_UID}"
        call.line(
            f"    NotificationRecord(0x{int(_id(key), 16):08x}: pkg={note.package} user=UserHandle{{0}} id={at}"
            f" tag=null importance=4 key={key}: Notification(channel=message shortcut=null contentView=null"
            " vibrate=null sound=null defaults=0x0 flags=0x11 color=0x00000000 category=msg vis=PRIVATE))"
        )
        call.line(
            f"      uid={_UID} userId=0\n      opPkg={note.package}\n      flags=0x11\n      pri=1\n      key={key}"
        )
        call.line("      seen=false\n      extras={")
        for name, text in (("title", note.title), ("text", note.text)):
            call.line(f"        android.{name}=String {f'({text})' if plain else f'[length={len(text)}]'}")
        call.line("        android.showWhen=Boolean (true)\n      }")
        if note.updated_ms:
            call.line(f"      mUpdateTimeMs={note.updated_ms}")
    call.line("  mLightEnabled=true")


def _package(call: Call) -> None:
    names = [argument for argument in call.arguments if not argument.startswith("-")]
    found = call.phone.apps.get(names[0]) if names else None
    if found is None:
        call.line(f"Unable to find package: {names[0] if names else ''}")
        return
    call.line(f"Packages:\n  Package [{found.package}] ({_id(found.package)}):\n    userId={_UID}")
    call.line(f"    codePath={code_path(found).rpartition('/')[0]}\n    versionCode=1 minSdk=21 targetSdk=31")
    flags = "SYSTEM HAS_CODE" if is_system(found) else "HAS_CODE ALLOW_CLEAR_USER_DATA"
    signed = _id(found.package, "signature")
    call.line(f"    versionName={found.version}\n    splits=[base]\n    pkgFlags=[ {flags} ]\n    enabled=0")
    call.line(f"    signatures=PackageSignatures{{{signed} version:2, signatures:[{signed}], past signatures:[]}}")
    call.line("    firstInstallTime=2026-01-05 09:00:00\n    lastUpdateTime=2026-06-01 09:00:00")


_SERVICES: dict[str, Callable[[Call], None]] = {
    "activity": _activity,
    "battery": _battery,
    "display": _display,
    "input_method": _input_method,
    "notification": _notification,
    "package": _package,
    "power": _power,
    "window": _window,
}
