"""Pure functions that read the output of Android's tools, in the formats of Android 8 to 14. None of them raises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.devices.base import Battery, DeviceEntry, Look, Notification, ScreenState, Window, WindowKind
from agent_core.devices.checks import PACKAGE

# `look` keeps only these lines of `dumpsys window`, `dumpsys power` and `dumpsys activity`: the rest is hundreds of
# kilobytes.
WINDOW_LINES = r"mCurrentFocus|mFocusedApp|mDreamingLockscreen|mShowingLockscreen|showing=|mIsShowing=|occluded="
POWER_LINES = r"mWakefulness=|Display Power: state="
ACTIVITY_LINES = r"topResumedActivity|mResumedActivity|ResumedActivity:"


# -- phones that are attached

# SERIAL STATE, then the path of a cable ("usb:1-1"; on macOS "1-1") and some of these. A state may have several words
# ("no permissions (…)").
_TAGS = re.compile(r"\s(?:(?:usb|product|model|device|transport_id):|\d+-[\d.]+(?=\s|$)).*")
_MODEL = re.compile(r"\smodel:(\S+)")
_NUMBER = re.compile(r"\stransport_id:(\d+)")


def parse_devices(text: str) -> tuple[DeviceEntry, ...]:
    """Read the adb server's ``host:devices-l``: a line for each attached phone, whatever its state."""
    found = []
    for line in text.splitlines():
        serial, _, rest = line.strip().partition("\t" if "\t" in line else " ")
        state = _TAGS.sub("", f" {rest}").strip()
        if serial and state:
            model, number = (tag[1] if (tag := pattern.search(rest)) else "" for pattern in (_MODEL, _NUMBER))
            found.append(DeviceEntry(serial, state, model, connection_of(serial), number=number))
    return tuple(found)


def connection_of(serial: str) -> str:
    """Return ``usb`` or ``tcp``, judged by the name of the transport."""
    over_network = ":" in serial or "._adb-tls-connect._tcp" in serial or serial.startswith("emulator-")
    return "tcp" if over_network else "usb"


# -- phones that announce themselves in the network

PAIRING, CONNECT = "_adb-tls-pairing._tcp", "_adb-tls-connect._tcp"


@dataclass(frozen=True, slots=True)
class MdnsService:
    """An announcement. ``kind``: PAIRING, CONNECT or another; ``address``: host:port."""

    name: str
    kind: str
    address: str

    def is_of(self, maker_serial: str) -> bool:
        """Tell whether a phone with this serial can be connected to here: its name is adb-SERIAL-SIX_LETTERS."""
        return self.kind == CONNECT and self.name.startswith(f"adb-{maker_serial}-")


def parse_mdns_services(text: str) -> tuple[MdnsService, ...]:
    """Read the adb server's ``host:mdns:services``: name, kind and address, a tab between each two.

    Older servers end the kind with a full stop.
    """
    rows = (line.split("\t") for line in text.splitlines())
    return tuple(
        MdnsService(row[0].strip(), row[1].strip().rstrip("."), row[2].strip()) for row in rows if len(row) == 3
    )


# -- windows

_FOCUS = re.compile(r"^\s*mCurrentFocus=(?:null|Window\{\S+(?: u\d+)?(?: d\d+)? (?P<title>[^}]*)\})", re.MULTILINE)
_RECORD = r"ActivityRecord\{\S+ u\d+ (?P<package>[\w.]+)/(?P<activity>[\w.$]+)"
_FOCUSED_APP = re.compile(r"^\s*mFocusedApp=.*?" + _RECORD, re.MULTILINE)
_RESUMED = re.compile(r"^\s*(?:topResumedActivity|mResumedActivity|ResumedActivity)\s*[=:].*?" + _RECORD, re.MULTILINE)
_COMPONENT = re.compile(r"(?P<package>[\w.]+)/(?P<activity>[\w.$]+)")
# Android 11 put the shade and the lock screen into one window; before it was the status bar's own.
_SHADE_TITLES = ("NotificationShade", "StatusBar", "QuickSettings", "com.android.systemui.volume.panel")
_LOCK_TITLES = ("Keyguard", "Bouncer", "AOD", "LockScreen")


def parse_window(text: str) -> Window:
    """Return the focused window of ``dumpsys window``, else the focused or resumed app.

    A popup of an app belongs to the app with the focus; a system dialog (not responding, crashed) to ``android``.
    """
    locked = parse_locked(text)
    matches = list(_FOCUS.finditer(text))
    titles = [title for match in matches if (title := match["title"])]
    if titles:
        return _titled(titles[0].strip(), text, locked=locked)
    if locked:
        return Window(None, kind=WindowKind.LOCK)
    if matches:
        return Window(None, kind=WindowKind.NONE)
    app = _FOCUSED_APP.search(text) or _RESUMED.search(text)
    return _app(app) if app else Window(None, kind=WindowKind.NONE)


def _titled(title: str, text: str, *, locked: bool) -> Window:
    component = _COMPONENT.match(title)
    if title.startswith(_LOCK_TITLES):
        return Window(None, kind=WindowKind.LOCK)
    if title.startswith(_SHADE_TITLES):
        return Window(None, kind=WindowKind.LOCK if locked else WindowKind.SHADE)
    if component:
        return _app(component)
    if title.startswith(("Application Not Responding", "Application Error")):
        return Window("android", title)
    app = _FOCUSED_APP.search(text) or _RESUMED.search(text)
    if app:
        return _app(app)
    package = PACKAGE.match(title)
    return Window(package[0]) if package else Window(None, kind=WindowKind.NONE)


def _app(match: re.Match[str]) -> Window:
    return Window(match["package"], match["activity"])


_LOCK_FLAG = re.compile(r"\b(?:mShowingLockscreen|mIsShowing|isStatusBarKeyguard)=(true|false)")
_DREAMING_FLAG = re.compile(r"\bmDreamingLockscreen=(true|false)")
_DELEGATE_FLAG = re.compile(r"^\s*showing=(true|false)\s*$", re.MULTILINE)
_OCCLUDED_FLAG = re.compile(r"^\s*(?:occluded|mOccluded)=true\s*$", re.MULTILINE)


def parse_locked(text: str) -> bool:
    """Tell whether ``dumpsys window`` says that the lock screen covers everything.

    The keyguard's own field (``showing``) counts before the older ``mDreamingLockscreen``, which stays true on some
    phones. A lock screen under an app (a call, an alarm) does not count as locked.
    """
    for flag in (_DELEGATE_FLAG, _LOCK_FLAG, _DREAMING_FLAG):
        if found := flag.findall(text):
            return "true" in found and not _OCCLUDED_FLAG.search(text)
    return False


def parse_awake(text: str) -> bool:
    """Read ``dumpsys power``. A phone that reports nothing about it is taken to be awake."""
    if wakefulness := re.search(r"mWakefulness=(\w+)", text):
        return wakefulness[1] == "Awake"
    if power := re.search(r"Display Power: state=(\w+)", text):
        return power[1] == "ON"
    return True


def parse_look(text: str) -> Look:
    return Look(parse_window(text), ScreenState(awake=parse_awake(text), locked=parse_locked(text)))


# -- size and displays


def parse_size(text: str) -> tuple[int, int] | None:
    """Return width and height in pixels: ``cur=`` of ``dumpsys window displays`` (in the current orientation), else
    ``wm size``.
    """
    for pattern in (r"\bcur=(\d+)x(\d+)", r"Override size: (\d+)x(\d+)", r"Physical size: (\d+)x(\d+)"):
        if found := re.search(pattern, text):
            return int(found[1]), int(found[2])
    return None


_DISPLAY = re.compile(r"DisplayDeviceInfo\{.*?uniqueId=\"local:(\d+)\"[^\n]*?\bstate (\w+)")


def parse_active_display(text: str) -> str | None:
    """Return the physical id (for ``screencap -d``) of the first display in ``dumpsys display`` that is on."""
    for number, state in _DISPLAY.findall(text):
        if state == "ON":
            return str(number)
    return None


def parse_display_count(text: str) -> int:
    """Return the number of the phone's own displays in ``dumpsys display``."""
    return len({number for number, _ in _DISPLAY.findall(text)})


# -- packages


def parse_packages(text: str) -> tuple[str, ...]:
    """Read ``pm list packages``. Return the names sorted, each once."""
    names = (line.removeprefix("package:").strip() for line in text.splitlines() if line.startswith("package:"))
    return tuple(sorted({name for name in names if name}))


def parse_component(text: str, package: str) -> str | None:
    """Read ``cmd package resolve-activity --brief``: the launcher activity (``package/.Activity``); None if there is
    none.
    """
    for line in reversed(text.splitlines()):
        component = _COMPONENT.fullmatch(line.strip())
        if component and component["package"] == package:
            return line.strip()
    return None


def parse_version(text: str) -> str | None:
    """Read ``versionName`` in ``dumpsys package NAME``.

    The first is in use; a later one is the system's hidden copy.
    """
    found = re.search(r"versionName=(\S+)", text)
    return None if found is None or found[1] == "null" else found[1]


# -- keyboard


def parse_input_method(text: str) -> tuple[str | None, bool]:
    """Read ``dumpsys input_method``: the current method's id, and whether it is bound (if not reported, it counts as
    bound).
    """
    current = re.search(r"\bmCurId=([^\s,]+)", text)
    chosen = re.search(r"\bmCurMethodId=([^\s,]+)", text)
    found = current if current and current[1] != "null" else chosen
    bound = re.search(r"\bm(?:HaveConnection|HasConnection|HasMainConnection)=(true|false)", text)
    identity = None if found is None or found[1] == "null" else found[1]
    return identity, bound is None or bound[1] == "true"


# -- notifications

_DUMP_LATE = re.compile(r"^\*\*\* SERVICE '\w+' DUMP TIMEOUT", re.MULTILINE)

_KEY = re.compile(r"\bkey=(?P<key>.+?): Notification\(")
_KEY_LINE = re.compile(r"^\s+key=(?P<key>.+?)\s*$")
_UPDATED = re.compile(r"^\s+mUpdateTimeMs=(?P<ms>\d{1,15})\s*$")
_SECTION = re.compile(r"^ {0,2}\S[^=(]*:\s*(?:\(\d+\))?\s*$")
_EXTRA = re.compile(r"^\s*android\.(?P<name>\w+(?:\.\w+)*)=(?P<value>.*)$")
_TYPED = re.compile(r"^(?:\w+) \((?P<value>.*)$", re.DOTALL)


def dump_refused(text: str) -> bool:
    """Tell whether ``dumpsys`` says, with exit status 0, that it is not allowed, not able, or too late."""
    begins, ends = text.lstrip()[:200], text.rstrip()[-200:]  # in between are texts that anybody may have written
    return begins.startswith(("Permission Denial", "Can't find service")) or bool(_DUMP_LATE.search(ends))


def parse_notifications(text: str) -> tuple[Notification, ...]:
    """Read the notifications in the shade from ``dumpsys notification --noredact``, in the phone's order, each key
    once.

    Only the list of shown ones is read, not the archive or the snoozed ones. Texts may span lines.
    """
    found: dict[str, Notification] = {}
    for start, block in _records(text):
        extras = _extras(block)
        key = next(filter(None, (_KEY_LINE.match(line) for line in block)), None) or _KEY.search(start)
        package = re.search(r"pkg=(\S+)", start)
        title, body = extras.get("title", ""), extras.get("bigText") or extras.get("text", "")
        if package is None or not (title or body):
            continue
        identity = key["key"] if key else f"{package[1]}#{len(found)}"
        updated = next(filter(None, map(_UPDATED.match, block)), None)
        shown = Notification(package[1], title, body, key["key"] if key else "", int(updated["ms"]) if updated else 0)
        found.setdefault(identity, shown)
    return tuple(found.values())


def _records(text: str) -> list[tuple[str, list[str]]]:
    records: list[tuple[str, list[str]]] = []
    inside = True
    for line in text.splitlines():
        if line.lstrip().startswith("NotificationRecord("):
            if inside:
                records.append((line, []))
        elif _SECTION.match(line):
            inside = "notification list" in line.lower() or line.startswith("Current Notification")
        elif inside and records:
            records[-1][1].append(line)
    return records


def _extras(lines: Sequence[str]) -> dict[str, str]:
    raw: dict[str, list[str]] = {}
    name, inside = None, False
    for line in lines:
        if line.strip() == "extras={":
            inside = True
        elif inside and (match := _EXTRA.match(line)):
            name = match["name"]
            raw.setdefault(name, [match["value"]])
        elif inside and line.strip() == "}" and (name is None or raw[name][-1].rstrip().endswith((")", "null", "]"))):
            break
        elif inside and name:
            raw[name].append(line)
    return {name: value for name, parts in raw.items() if (value := _typed("\n".join(parts))) is not None}


def _typed(value: str) -> str | None:
    match = _TYPED.match(value.rstrip())
    if match is None:
        return None
    inner = match["value"]
    return inner[:-1] if inner.endswith(")") else inner


# -- words of failure


def first_line(text: str) -> str:
    """Return the line that says what went wrong: the first that is not part of a stack trace or a mere heading."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if not line.startswith(("at ", "Starting:", "Broadcasting:", "Exception occurred while executing")):
            return line[:300]
    return lines[0][:300] if lines else ""


def denies_input(text: str) -> bool:
    """Tell whether the phone refuses injected input, as some makers do until a developer setting is on."""
    return "INJECT_EVENTS" in text or ("SecurityException" in text and "inject" in text.lower())


def denies_settings(text: str) -> bool:
    """Tell whether the phone refuses to have its settings or its keyboard changed over adb."""
    return "WRITE_SECURE_SETTINGS" in text or "Permission denial: writing to settings" in text


# -- battery

_BATTERY_LINE = re.compile(r"^\s*(?P<name>[A-Za-z ]{1,30}): *(?P<value>\S{1,20})\s*$", re.MULTILINE)
# BatteryManager's numbers of a state that says whether it is charged: charging and full, discharging and not charging.
_CHARGING, _NOT_CHARGING = ("2", "5"), ("3", "4")


def parse_battery(text: str) -> Battery:
    """Read ``dumpsys battery``, which gives the temperature in tenths of a degree.

    A phone that is plugged in and does not charge is not charging.
    """
    lines = [(match["name"].strip().lower(), match["value"]) for match in _BATTERY_LINE.finditer(text)]
    values = dict(reversed(lines))  # of a name that makers print again further down the first counts
    level, state = values.get("level", ""), values.get("status", "")
    percent = int(level) if re.fullmatch(r"\d{1,3}", level, re.ASCII) and int(level) <= 100 else None
    charging = True if state in _CHARGING else False if state in _NOT_CHARGING else None
    if state == "5":  # full, with or without a cable
        charging = any(value == "true" for name, value in values.items() if name.endswith(" powered"))
    tenths = values.get("temperature", "")
    celsius = int(tenths) / 10 if re.fullmatch(r"-?\d{1,4}", tenths, re.ASCII) else None
    # Phones without a sensor report 0, or nonsense.
    return Battery(percent, charging, celsius if celsius is not None and 0 < celsius < 100 else None)
