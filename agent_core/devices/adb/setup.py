"""The permanent setup of a phone by adb: ADB Keyboard, staying awake while charging, no animations.

The previous values are stored on the phone, in an Android setting, before anything is changed. So the setup can be
undone from any computer, also after a crash in the middle. Anything that the owner has changed since is left alone.
"""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from agent_core.devices.adb.brands import Brand, advice, settings_denied
from agent_core.devices.adb.keyboard import METHOD, PACKAGE
from agent_core.devices.adb.parse import denies_input, denies_settings, first_line, parse_packages
from agent_core.devices.adb.transport import ShellResult, Transport
from agent_core.devices.shell import AND, OR, PIPE, Raw, command_line
from agent_core.devices.waiting import finish
from agent_core.errors import CommandFailed, DeviceError, InputRejected

log = structlog.get_logger(__name__)

MARKER = "phonedesk_setup"  # in Android's global settings: JSON, for the key of each change the previous value and ours
APP, KEYBOARD, AWAKE = "keyboard_app", "keyboard", "stay_awake"
SETTINGS: Mapping[str, tuple[str, str]] = {
    AWAKE: ("global", "stay_on_while_plugged_in"),
    "window_animations": ("global", "window_animation_scale"),
    "transition_animations": ("global", "transition_animation_scale"),
    "animator_durations": ("global", "animator_duration_scale"),
}
KEYS = (APP, KEYBOARD, *SETTINGS)  # in the order in which they are made; they are undone from the last to the first
PLUGGED = 7  # mains 1, USB 2, wireless 4
INSTALLED, ABSENT, ENABLED, DISABLED = "installed", "absent", "enabled", "disabled"
INSTALL_SECONDS = 120.0
APK_PATH = "/data/local/tmp/phonedesk-keyboard.apk"

_NEXT = "phonedesk-next"
_DEFAULT_METHOD = ("settings", "get", "secure", "default_input_method")
# KEYCODE_UNKNOWN: it goes the way of every key, and no window does anything with it.
HARMLESS_KEY = ("input", "keyevent", "0")


@dataclass(frozen=True, slots=True)
class SetupChange:
    """One change to the phone.

    key: one of KEYS.
    old, new: a setting's value ("null": not set), or a state of the keyboard.
    """

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SetupReport:
    """The changes that were made or planned.

    left: our changes that are not undone, because the owner has changed the setting since, or uses it.
    keyboard: whether ADB Keyboard is, or will be, installed and allowed.
    input_denied: the phone refuses taps and keys until the owner allows them; None in a plan, which tries none.
    """

    serial: str
    brand: Brand
    changes: tuple[SetupChange, ...]
    left: tuple[SetupChange, ...] = ()
    keyboard: bool = True
    input_denied: bool | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """The state of the phone.

    values: by KEYS. marker: the changes of an earlier setup. in_use: ADB Keyboard is the chosen keyboard.
    """

    values: Mapping[str, str]
    marker: Mapping[str, SetupChange] = field(default_factory=dict)
    in_use: bool = False

    def is_ours(self, change: SetupChange) -> bool:
        """Tell whether the phone is as ``change`` made it, and may be changed back: nobody uses the keyboard."""
        used = self.in_use and change.key in {APP, KEYBOARD}
        return self.values[change.key] == change.new and not used


class PhoneSetup:
    """The setup of one phone. Take the phone's lease first: a run changes some of the same settings while it works."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def plan(self, apk: Path | None = None) -> SetupReport:
        """Return the changes that ``apply`` would make; nothing is changed. ``apk``: a file with ADB Keyboard."""
        if apk is not None:
            await asyncio.to_thread(check_keyboard_file, apk)
        return await self._report(_planned(await self._read(), apk is not None), tried=None)

    async def apply(self, apk: Path | None = None) -> SetupReport:
        """Set up the phone: either everything or nothing.

        Raises InputRejected if ``apk`` is not a file with ADB Keyboard, SettingsDenied or CommandFailed if the phone
        refuses something. If it fails or is cancelled, the changes made so far are undone.
        """
        if apk is not None:
            await asyncio.to_thread(check_keyboard_file, apk)
        before = await self._read()
        changes = _planned(before, apk is not None)
        if changes:
            try:
                await finish(self._note({**before.marker, **{one.key: one for one in changes}}))
                await self._make(changes, apk)
            except BaseException:
                await finish(self._take_back(changes, before.marker))
                raise
        return await self._report(changes, tried=await self._input_denied())

    async def undo(self) -> SetupReport:
        """Put back the values from before ``apply``, as far as they are still as we set them.

        A value that the owner has changed since stays as it is, and its stored value is forgotten. The keyboard stays
        stored while they use it, so that it can be undone later.
        Raises SettingsDenied or CommandFailed if the phone refuses; the changes that are not undone yet stay stored
        then.
        """
        before = await self._read()
        for change in reversed(_ordered(before.marker)):
            if before.is_ours(change):
                await self._write(change.key, change.old, only_if=change.new)
        after = await self._read()
        if any(after.is_ours(change) for change in before.marker.values()):
            raise settings_denied(await self._transport.brand())  # some makers refuse without a word
        made = [one for one in reversed(_ordered(before.marker)) if before.values[one.key] != one.old]
        done = [SetupChange(one.key, one.new, one.old) for one in made if after.values[one.key] == one.old]
        left = [one for one in made if after.values[one.key] != one.old]
        if before.marker:
            await self._note({one.key: one for one in left if after.values[one.key] == one.new})
        return await self._report(done, left, tried=await self._input_denied())

    # -- reading the phone

    async def _read(self) -> _State:
        commands = [
            *(("settings", "get", *place) for place in SETTINGS.values()),
            ("settings", "get", "global", MARKER),
            ("pm", "list", "packages", PACKAGE),
            ("ime", "list", "-s"),
            _DEFAULT_METHOD,
        ]
        line = command_line(*(part for command in commands for part in (command, ("echo", _NEXT))))
        parts = [part.strip() for part in (await self._transport.shell(line, safe=True)).out.split(_NEXT)]
        if len(parts) <= len(commands):
            raise CommandFailed("The phone did not tell its settings.", key="settings_untold")
        values = dict(zip(SETTINGS, parts, strict=False))
        marker, packages, methods, chosen = parts[len(SETTINGS) : len(commands)]
        values[APP] = INSTALLED if PACKAGE in parse_packages(packages) else ABSENT
        values[KEYBOARD] = ENABLED if METHOD in methods.split() else DISABLED
        return _State(values, _changes(marker), chosen == METHOD)

    async def _input_denied(self) -> bool:
        return denies_input((await self._shell(*HARMLESS_KEY)).text)

    async def _report(
        self, changes: Sequence[SetupChange], left: Sequence[SetupChange] = (), *, tried: bool | None
    ) -> SetupReport:
        """Report ``changes``, made or planned. ``tried``: whether a key was refused; None if none was sent."""
        now = dict((await self._read()).values) | {change.key: change.new for change in changes}
        keyboard = now[APP] == INSTALLED and now[KEYBOARD] == ENABLED
        brand = await self._transport.brand()
        return SetupReport(self._transport.serial, brand, tuple(changes), tuple(left), keyboard, tried)

    # -- changing the phone

    async def _make(self, changes: Sequence[SetupChange], apk: Path | None) -> None:
        for change in changes:
            # Not cut in two: a change that is still under way on the phone would come after it was taken back.
            await finish(self._write(change.key, change.new, apk=apk))
        now = (await self._read()).values
        if any(now[change.key] != change.new for change in changes):
            raise settings_denied(await self._transport.brand())  # some makers refuse without a word

    async def _take_back(self, changes: Sequence[SetupChange], marker: Mapping[str, SetupChange]) -> None:
        """Undo the changes made so far; those that cannot be undone stay stored for ``undo``."""
        try:
            now = (await self._read()).values
            for change in reversed(changes):
                if now[change.key] == change.new:
                    await self._write(change.key, change.old)
            now = (await self._read()).values
            await self._note({**marker, **{one.key: one for one in changes if now[one.key] == one.new}})
        except DeviceError as error:
            log.warning("adb.setup_left", serial=self._transport.serial, kind=error.kind, error=str(error))

    async def _write(self, key: str, value: str, *, only_if: str = "", apk: Path | None = None) -> None:
        """Make ``key`` have this value or state. ``only_if``: of a setting, only if it still has that value."""
        brand = await self._transport.brand()
        if key == APP:
            if value == ABSENT:
                self._must(await self._shell("pm", "uninstall", PACKAGE), brand)
            elif apk is not None:
                await self._install(apk, brand)
        elif key == KEYBOARD:
            self._must(await self._shell("ime", "enable" if value == ENABLED else "disable", METHOD), brand)
        else:
            place = SETTINGS[key]
            change = ("settings", "delete", *place) if value == "null" else ("settings", "put", *place, value)
            # If another program changes a value at this moment, that value stays. This is not a failure.
            still = ("settings", "get", *place, PIPE, "grep", "-x", "-F", only_if, AND) if only_if else ()
            otherwise = (OR, "true") if only_if else ()
            self._must(await self._shell(*still, *change, *otherwise), brand)

    async def _install(self, apk: Path, brand: Brand) -> None:
        await self._transport.push(await asyncio.to_thread(apk.read_bytes), APK_PATH)
        line = command_line(("pm", "install", "-r", APK_PATH), ("rm", "-f", APK_PATH))
        result = await self._transport.shell(line, seconds=INSTALL_SECONDS)
        if "Success" not in result.text:
            why = first_line(result.text) or "it gave no reason"
            how = advice(brand, "install")
            said = f"The phone did not install ADB Keyboard: {why}."
            raise CommandFailed(said, advice=how, key="not_installed", why=why, how=how)

    async def _note(self, marker: Mapping[str, SetupChange]) -> None:
        """Store the previous values on the phone. Raises SettingsDenied if the phone does not keep them."""
        read = ("settings", "get", "global", MARKER)
        if not marker:
            self._must(await self._shell("settings", "delete", "global", MARKER), await self._transport.brand())
            return
        text = json.dumps({key: [change.old, change.new] for key, change in marker.items()}, separators=(",", ":"))
        line = command_line(("settings", "put", "global", MARKER, text), read)
        result = await self._transport.shell(line, safe=True)
        if text not in result.out:
            log.info("adb.setup_refused", serial=self._transport.serial, words=first_line(result.err or result.out))
            raise settings_denied(await self._transport.brand())

    async def _shell(self, *command: str | Raw) -> ShellResult:
        return await self._transport.shell(command_line(command))

    @staticmethod
    def _must(result: ShellResult, brand: Brand) -> None:
        if denies_settings(result.text):
            raise settings_denied(brand)
        if result.code != 0 or "Exception" in result.text or result.text.startswith("Failure"):
            why = first_line(result.text) or f"exit code {result.code}"
            raise CommandFailed(f"The phone said: {why}", key="phone_said", why=why)


def _planned(state: _State, with_file: bool) -> list[SetupChange]:
    """Return the changes to make. ``with_file``: there is a file with ADB Keyboard to install."""
    awake = state.values[AWAKE]
    wanted = dict.fromkeys(SETTINGS, "0")
    wanted[AWAKE] = str((int(awake) if awake.isdecimal() else 0) | PLUGGED)
    if state.values[APP] == INSTALLED or with_file:
        wanted[APP], wanted[KEYBOARD] = INSTALLED, ENABLED
    found = (SetupChange(key, state.values[key], wanted[key]) for key in KEYS if key in wanted)
    return [change for change in found if not _same(change.old, change.new)]


def _same(value: str, other: str) -> bool:
    """Tell whether two values of a setting are the same; scales are written as ``0`` and ``0.0``."""
    try:
        return float(value) == float(other)
    except ValueError:
        return value == other


def _ordered(marker: Mapping[str, SetupChange]) -> list[SetupChange]:
    return [marker[key] for key in KEYS if key in marker]


def _changes(marker: str) -> dict[str, SetupChange]:
    """Read MARKER; ignore entries that are not ours."""
    try:
        found = json.loads(marker)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        key: SetupChange(key, *pair)
        for key, pair in found.items()
        if key in KEYS and isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
    }


def check_keyboard_file(apk: Path) -> None:
    """Raise InputRejected if the file is not an Android app, or another app than ADB Keyboard.

    Its manifest is binary XML, whose strings are UTF-8 or UTF-16.
    """
    try:
        with zipfile.ZipFile(apk) as archive:
            manifest = archive.read("AndroidManifest.xml")
    except FileNotFoundError:
        raise InputRejected(f"There is no file {apk}.", key="no_apk", file=apk) from None
    except (OSError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        said = f"{apk} is no Android app: {error}."
        raise InputRejected(said, key="not_an_apk", file=apk) from None
    if not any(PACKAGE.encode(encoding) in manifest for encoding in ("utf-8", "utf-16-le")):
        raise InputRejected(
            f"{apk} is another app than ADB Keyboard ({PACKAGE}).", key="another_apk", file=apk, package=PACKAGE
        )
