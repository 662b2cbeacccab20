"""The protocol of a phone, which the agent works through, and its data types.

There are three implementations: Android over adb, HarmonyOS over hdc, and iOS over WebDriverAgent.

All coordinates are pixels of the screen in its current orientation. All durations are seconds. Every method raises only
errors of ``agent_core.errors.DeviceError``, can be cancelled, and has its own timeout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from PIL import Image

from agent_core.geometry import Box, Point


class Key(StrEnum):
    """A key that every phone has in some form."""

    BACK = "BACK"
    HOME = "HOME"
    ENTER = "ENTER"
    APP_SWITCH = "APP_SWITCH"
    DELETE = "DEL"


class System(StrEnum):
    """The operating system of a phone."""

    ANDROID = "android"
    HARMONYOS = "harmonyos"
    IOS = "ios"


_PREFIXES = {"hdc:": System.HARMONYOS, "wda:": System.IOS}


def system_of(serial: str) -> System:
    """Return the system of the phone with this serial. A serial without ``hdc:`` or ``wda:`` in front is adb's."""
    return next((system for prefix, system in _PREFIXES.items() if serial.startswith(prefix)), System.ANDROID)


class WindowKind(StrEnum):
    """The kind of the window that has the focus."""

    APP = "app"
    SHADE = "shade"  # the notification shade is down
    LOCK = "lock"  # the lock screen
    NONE = "none"  # no window has the focus


@dataclass(frozen=True, slots=True)
class Window:
    """The window in front.

    package: the full name (``com.tencent.mobileqq``); None if no app is in front.
    """

    package: str | None
    activity: str | None = None
    kind: WindowKind = WindowKind.APP


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of the screen.

    digest: a hash of the pixels below the status bar; two screens are equal if their digests are equal.
    """

    image: Image.Image = field(repr=False, compare=False)  # RGB
    digest: str
    taken_at: float  # time.monotonic() of the moment the capture was asked for

    @property
    def size(self) -> tuple[int, int]:
        return (self.image.width, self.image.height)


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the accessibility tree, in document order."""

    box: Box
    text: str = ""
    description: str = ""
    resource_id: str = ""
    class_name: str = ""
    package: str = ""
    clickable: bool = False
    focused: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification in the shade.

    updated_ms: when the app last showed it, in milliseconds since 1970 by the phone's clock; 0 if unknown.
    """

    package: str
    title: str
    text: str
    key: str = ""
    updated_ms: int = 0


@dataclass(frozen=True, slots=True)
class ScreenState:
    """The state of the screen: on or off, and covered by the lock screen or not."""

    awake: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Look:
    """The window in front and the state of the screen, from one round trip."""

    window: Window
    screen: ScreenState


@dataclass(frozen=True, slots=True)
class LookedPicture:
    """A picture, and the window and screen state directly before it was taken."""

    frame: Frame
    look: Look


LOW_PERCENT, CHARGED_PERCENT = 15, 20
HOT_CELSIUS, COOL_CELSIUS = 45.0, 42.0


@dataclass(frozen=True, slots=True)
class Battery:
    """A phone's battery. A value is None if the phone does not report it.

    percent: the charge, 0-100.
    charging: whether the phone is charging. Also True if it is full and plugged in.
    celsius: the temperature of the battery.
    """

    percent: int | None = None
    charging: bool | None = None
    celsius: float | None = None

    def is_low(self, *, was: bool = False) -> bool:
        """Tell whether the phone may soon switch off: below 15 % and not charging.

        was: the last result. Once low, a battery stays low until it charges or has more than 20 %, and while its charge
        is unknown.
        """
        if self.charging or self.percent is None:
            return was and not self.charging
        return self.percent < LOW_PERCENT or (was and self.percent <= CHARGED_PERCENT)

    def is_hot(self, *, was: bool) -> bool:
        """Tell whether the battery is above 45 °C.

        was: the last result. Once hot, a battery stays hot until it is below 42 °C, and while its temperature is
        unknown.
        """
        if self.celsius is None:
            return was
        return self.celsius > HOT_CELSIUS or (was and self.celsius >= COOL_CELSIUS)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A phone's identity and condition, as the phone reports them.

    sdk: the API level; on iOS the major version. 0 if unknown.
    """

    serial: str
    model: str
    size: tuple[int, int]
    sdk: int
    status: str = "device"  # device, offline, unauthorized …
    connection: str = "usb"  # usb or tcp
    system: System = System.ANDROID
    transports: tuple[str, ...] = ()  # see ``DeviceEntry``
    battery: Battery = field(default_factory=Battery)  # if it was asked for, too


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One attached phone as its tool lists it, before the phone itself was asked anything.

    serial: the phone's name everywhere in the product. All but Android phones have their tool in front: ``hdc:…``,
    ``wda:…``.
    transports: the names by which its tool reaches the phone, best first; () if the serial is the only one.
    number: the adb server's number of this connection. It changes each time the phone is connected again.
    state: ``device`` if the phone can be used, else ``offline``, ``unauthorized`` …
    model: as its tool writes it; adb writes underscores.
    """

    serial: str
    state: str
    model: str = ""
    connection: str = "usb"  # usb or tcp
    system: System = System.ANDROID
    transports: tuple[str, ...] = ()
    number: str = field(default="", compare=False)

    @property
    def reached_by(self) -> tuple[str, ...]:
        """The names by which its tool reaches the phone, best first; at least one."""
        return self.transports or (self.serial,)


class TextInput(Protocol):
    """The keyboard of a phone, while this process holds it.

    The phone itself checks the owner on every call: it does nothing and the call raises LeaseLost if another owner has
    taken the keyboard, however long this process was suspended in between.
    """

    async def clear(self) -> None:
        """Empty the focused field."""

    async def type(self, text: str) -> None:
        """Add ``text`` (any Unicode, ``\\n`` is a new line) to the focused field.

        A return without an error does not prove that the text arrived: read the field back, and report the result to
        ``confirm``.
        """

    async def confirm(self, *, arrived: bool) -> None:
        """Record whether the whole text of the last ``type`` is in the field, as the screen shows it.

        If it is not, the next text is typed in another way, if the phone has one. Empty the field first.
        """

    async def tap(self, point: Point) -> None:
        """Tap as ``Device.tap`` does, if the keyboard is still ours. Used for the Send button."""

    async def key(self, key: Key) -> None:
        """Press a key as ``Device.key`` does, if the keyboard is still ours."""

    async def send_action(self) -> None:
        """Trigger the focused field's own send action, as the send key of a keyboard does (Android's editor action)."""


@dataclass(slots=True)
class TouchWatch:
    """A watch for touches by a person's fingers. Touches that adb injects are not among them.

    touched: a person has touched the screen since the watch was made or ``forget`` was last called. A phone that fills
        the watch does not call it.
    """

    touched: bool = False

    def forget(self) -> None:
        """Count only touches from now on."""
        self.touched = False


class Device(Protocol):
    """One phone.

    Actions raise CommandFailed if a coordinate is negative or too large for any screen, and InputDenied if an Android
    phone refuses injected input.
    """

    @property
    def serial(self) -> str:
        """The name of the phone everywhere in the product, see ``DeviceEntry.serial``."""

    @property
    def system(self) -> System:
        """The operating system of the phone."""

    @property
    def round_trips(self) -> int:
        """The number of calls made to the phone so far."""

    async def info(self) -> DeviceInfo:
        """Ask the phone for its identity and the size of its screen. The battery is not asked for.

        Raises CommandFailed if the phone does not report the size of its screen.
        """

    async def screenshot(self) -> Frame:
        """Take a new picture; never return an old one.

        Raises ScreenOff if the picture is black because the screen is off, ScreenshotFailed if it is black for another
        reason or broken.
        """

    async def observe(self) -> LookedPicture:
        """Return a picture and the look of the same moment, in as few calls as the phone allows.

        Raises ScreenOff if the screen is off, whatever the picture shows.
        """

    async def look(self) -> Look:
        """Return the window in front and the state of the screen, in one round trip if the phone allows it."""

    async def window(self) -> Window:
        """Return the window in front."""

    async def screen(self) -> ScreenState:
        """Return whether the screen is on and locked."""

    async def tap(self, point: Point) -> None:
        """Tap a point."""

    async def double_tap(self, point: Point) -> None:
        """Tap a point twice in quick succession."""

    async def long_press(self, point: Point, seconds: float = 1.0) -> None:
        """Press a point for ``seconds``, 0 to 30. A phone that knows only one length of press uses that.

        Raises CommandFailed if ``seconds`` is out of range.
        """

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None:
        """Move a finger from ``start`` to ``end`` within ``seconds``, 0 to 30.

        Raises CommandFailed if ``seconds`` is out of range.
        """

    async def key(self, key: Key) -> None:
        """Press a key."""

    async def launch(self, package: str) -> None:
        """Bring the app to the front and wait until it is there.

        Raises AppNotFound if the app is not installed, CommandFailed if something else is in front 10 s later (15 s on
        iOS).
        """

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        """Return the names of the installed packages. The list is kept for an hour.

        fresh: read the list again, because an app that should be there is missing from it.
        also: further packages to look for, on a phone that cannot list its apps.
        """

    def start_apps_afresh(self) -> None:
        """Restart each app at its next first launch from now on, so that nothing of what it showed before is left."""

    def keyboard(self) -> AbstractAsyncContextManager[TextInput]:
        """Hold the keyboard inside the block.

        The owner's keyboard is put back in every outcome, including cancellation.
        """

    async def tree(self) -> Sequence[Node]:
        """Return the nodes of the accessibility tree, in document order.

        Raises TreeUnavailable if it cannot be read in time.
        """

    async def notifications(self) -> Sequence[Notification]:
        """Return the notifications in the shade, in the phone's order.

        Raises CommandFailed if the phone does not report them; HarmonyOS and iOS never do.
        """

    async def recover(self) -> None:
        """Put back what a dead run left changed on the phone (keyboard, staying awake).

        Called when a phone is taken.
        """

    async def wake(self) -> None:
        """Turn the screen on, and remove the lock screen if no secret is needed or a PIN is configured.

        Raises ScreenOff if the screen stays off, CommandFailed if the lock screen asks for a secret that phonedesk does
        not have.
        """

    def kept_awake(self) -> AbstractAsyncContextManager[None]:
        """Keep the screen on inside the block, which iOS does not allow.

        The owner's own setting is put back afterwards.
        """

    def touch_watch(self, watch: TouchWatch | None = None) -> AbstractAsyncContextManager[TouchWatch]:
        """Watch for touches by a person inside the block, with ``watch`` or a new one.

        A phone that does not report touches never shows any.
        """

    async def open_url(self, url: str, package: str) -> None:
        """Have the app ``package`` open an address of its own scheme (``mqqwpa://…``).

        Raises CommandFailed if it does not.
        """

    async def properties(self, *names: str) -> Mapping[str, str]:
        """Return Android system properties by name (``ro.build.version.release``).

        HarmonyOS and iOS answer the ones that they have. The value of an unknown property is "". Raises CommandFailed
        if a name is malformed.
        """

    async def app_version(self, package: str) -> str | None:
        """Return the version of an installed app; None if it is unknown. iOS reports its own version for every app."""

    async def battery(self) -> Battery:
        """Return the state of the battery."""

    async def leave(self) -> None:
        """End a use of the phone, before its lease is given back: lock the phone if it was unlocked for a run.

        Raises nothing if the phone cannot be reached: the next run then locks it.
        """

    async def close(self) -> None:
        """Close our connections and files. Nothing happens that a person or another run would notice."""


class DeviceServer(Protocol):
    """The source of the phones of one system: an adb server, hdc, or WebDriverAgent."""

    async def devices(self) -> list[DeviceEntry]:
        """Return all attached phones, whatever their state, within 5 s. Each is asked at most whether it is there."""

    def device(self, serial: str) -> Device:
        """Return the phone with this serial, one of those in ``devices``. The phone is not asked anything yet."""

    async def close(self) -> None:
        """Close what this object started or opened. The phones stay as they are."""
