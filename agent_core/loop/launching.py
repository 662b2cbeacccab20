"""Bringing an app to the front by any name that people use for it.

A name is looked up among the known names (``agent_core.apps.names``), then among the labels that were found on this
phone before; last, its icon is searched for on the home screen, and the package that it opens is remembered: adb, for
one, reports packages but no labels. The home screen is read page by page as any other screen is, then the list of all
apps, which a swipe up opens on most phones. Icons inside folders are not searched. Only Home, swipes and the tap on one
icon are used, so a search changes nothing on the phone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from agent_core.apps.names import bare, is_identifier, known_as, packages_named, resolve_app, similar_names
from agent_core.apps.profile import profile
from agent_core.devices.base import Device, Key, System, TouchWatch, WindowKind
from agent_core.errors import AppNotFound, CommandFailed
from agent_core.geometry import Point
from agent_core.perception.compare import alike
from agent_core.perception.observer import Observation, Observer
from agent_core.perception.popups import stands_over_apps
from agent_core.perception.readings import Reading
from agent_core.ports import Lease, Ledger
from agent_core.session import Session
from agent_core.texts import Listed

MOST_PAGES = 8  # of the home screen
MOST_SCREENS = 12  # of the list of all apps
MOST_LOOKS = 3  # until Home is in front, if it is none of the known launchers
OPENS_SECONDS = 10.0
SWIPE_SECONDS = 0.3
SIMILAR = 0.5  # of 1: how much of a label has to be the same to be named as a similar one
# Fractions of the screen: the most by which a label is below a word that is drawn on its icon, and beside it.
ON_ICON_X, ON_ICON_Y = 0.1, 0.08

# HarmonyOS and iOS name their home screens sceneboard and SpringBoard.
_LAUNCHER = re.compile(r"launcher|trebuchet|\.miui\.home$|\.home$|homescreen|sceneboard|springboard", re.IGNORECASE)


def allowed_packages(session: Session) -> set[str]:
    """Return the packages that a task may touch; an empty set means all."""
    if session.gate.enabled:
        return set(profile(session.gate.app).packages)
    return {package for app in session.apps for package in packages_named(app)}


async def installed(device: Device, app: str) -> str | None:
    """Return the package of ``app`` on the phone, by any of its known names; None if it is not installed."""
    itself = (app.strip(),) if is_identifier(app) else ()
    return resolve_app(app, await device.packages(also=itself), device.system) or resolve_app(
        app, await device.packages(fresh=True, also=itself), device.system
    )


class AppLauncher:
    """An opener of apps on one phone, whose lease is ours.

    ``allowed``: the only packages that may be in front; empty: all.
    """

    def __init__(
        self,
        observer: Observer,
        ledger: Ledger,
        lease: Lease,
        touches: TouchWatch | None = None,
        allowed: Collection[str] = (),
    ) -> None:
        self._device = observer.device
        self._ledger = ledger
        self._lease = lease
        self._touches = touches
        self._allowed = allowed
        self._home_screen = HomeScreen(observer, self._before_act)

    async def launch(self, app: str) -> None:
        """Bring the app to the front.

        Raises AppNotFound if it is not on the phone, if its name is not certain, or if what its icon opens may not be
        used, in which case the home screen is in front. Raises CommandFailed if a person touches the screen while the
        icon is looked for.
        """
        package = await self._known(app)
        if package is not None:
            await self._device.launch(package)
            return
        if packages_named(app) == (app.strip(),):  # no name, but a package
            raise AppNotFound(f"{app} is not installed on the phone.", key="package_missing", package=app.strip())
        package = await self._home_screen.open(app)
        if self._allowed and package not in self._allowed:
            await self._before_act()
            await self._device.key(Key.HOME)
            raise _not_allowed(app, package)
        await self._before_act()
        if (await self._device.window()).package != package:
            # a call or a dialog came in between: the opened app is not certain, and the next observation shows it
            return
        # A dialog over the app, for a permission or a password, does not make the name belong to that package.
        if not known_as(package) and not stands_over_apps(package):
            await self._ledger.keep_label(self._device.serial, bare(app), package)

    async def is_there(self, app: str) -> bool:
        """Tell whether the app is installed, or has an icon. Nothing is opened but the home screen."""
        if await self._known(app) is not None:
            return True
        try:
            await self._home_screen.find(app)
        except AppNotFound as error:
            return error.key == "two_icons"
        return True

    async def _known(self, app: str) -> str | None:
        package = await installed(self._device, app)
        if package is None:
            found = await self._ledger.labelled(self._device.serial, bare(app))
            package = found if found and found in await self._device.packages(also=(found,)) else None
        if package is not None and self._allowed and package not in self._allowed:
            raise _not_allowed(app, package)
        return package

    async def _before_act(self) -> None:
        await self._lease.check()
        if self._touches is not None and self._touches.touched:
            raise CommandFailed("Somebody touched the phone while the app was looked for.", key="touched_looking")


def _not_allowed(app: str, package: str) -> AppNotFound:
    said = f"{app!r} is {package} on this phone, which the task may not use."
    return AppNotFound(said, advice="", key="icon_not_allowed", app=app, package=package)


def is_home(package: str) -> bool:
    """Tell whether a package is a home screen, as far as its name tells."""
    return _LAUNCHER.search(package) is not None


@dataclass
class _Labels:
    """The labels read so far, in the order in which they were seen."""

    app: str
    all: dict[str, str] = field(default_factory=dict)  # bare to written

    def named(self, seen: Observation) -> list[Reading]:
        """Return the icons of this screen with the label. A word that is drawn on an icon is not an icon itself."""
        width, height = seen.size
        for reading in seen.readings:
            self.all.setdefault(bare(reading.text), reading.text.strip())
        found: list[Reading] = []
        for one in sorted(seen.readings, key=lambda r: r.box.center.y):
            if bare(one.text) != bare(self.app):
                continue
            here = one.box.center
            same = [
                other
                for other in found
                if abs(other.box.center.x - here.x) <= ON_ICON_X * width
                and abs(other.box.center.y - here.y) <= ON_ICON_Y * height
            ]
            found = [other for other in found if other not in same] + [one]
        return found

    def similar(self, installed: Collection[str], system: System) -> list[str]:
        """Return up to three names that are alike: labels here, or other names of apps that are installed."""
        here = [self.all[known] for known in alike(bare(self.app), self.all, cutoff=SIMILAR)]
        others = [one for one in similar_names(self.app, installed, system) if one not in self.all]
        return [*here, *others][:3]


class HomeScreen:
    """The icons of one phone. ``before_act`` is awaited before everything that is done on it; it may raise."""

    def __init__(self, observer: Observer, before_act: Callable[[], Awaitable[None]]) -> None:
        self._observer = observer
        self._before_act = before_act

    @property
    def _device(self) -> Device:
        return self._observer.device

    async def open(self, app: str) -> str:
        """Tap the icon labelled ``app`` and return the package that comes to the front.

        That may be a dialog of the phone before the app itself. Raises AppNotFound as ``find`` does, or if nothing
        opened.
        """
        icon, page = await self._icon(app)
        home = page.window.package
        await self._before_act()
        if (await self._device.window()).package != home:
            raise _no_home()
        await self._device.tap(icon.box.center)
        seen = await self._after(page)
        until = time.monotonic() + OPENS_SECONDS
        while time.monotonic() < until:
            front = seen.window.package
            if front is not None and front != home and seen.window.kind is WindowKind.APP:
                return front
            seen = await self._observer.observe(None)
        said = f"A tap on the icon of {app!r} opened nothing."
        raise AppNotFound(said, advice="It may be a folder: open it by hand.", key="icon_dead", app=app)

    async def find(self, app: str) -> None:
        """Bring the page with the icon labelled ``app`` to the front.

        Raises AppNotFound if there is none, if two have this label, or if nothing could be read.
        """
        await self._icon(app)

    async def _icon(self, app: str) -> tuple[Reading, Observation]:
        """Return the icon, and the page that it is on, which is in front."""
        labels = _Labels(app)
        found = await self._on_pages(labels, await self._home()) or await self._in_list(labels, await self._home())
        if found is not None:
            return found
        await self._home()
        if not labels.all:
            said = f"The app name {app!r} is not known, and nothing could be read on the home screen."
            advice = "Install the extra ocr, or name the app's package."
            raise AppNotFound(said, advice=advice, key="home_unread", app=app)
        said = f"The app {app!r} was not found: no icon on the home screen or in the list of apps has that name."
        if similar := labels.similar(await self._device.packages(), self._device.system):
            names = Listed(similar)
            advice = f"Similar names there: {names}."
            raise AppNotFound(said, advice=advice, key="no_icon_similar", app=app, similar=names)
        raise AppNotFound(said, advice="Install the app, or name its package.", key="no_icon", app=app)

    async def _on_pages(self, labels: _Labels, seen: Observation) -> tuple[Reading, Observation] | None:
        """Look through the home screen's pages and go back to the one that has the icon."""
        home, pages = seen.window.package, [_texts(seen)]
        found = [(0, icon) for icon in labels.named(seen)]
        while len(pages) < MOST_PAGES:
            seen = await self._turn(seen)
            if seen.window.package != home or _texts(seen) in pages:  # another app's page, or the last one
                break
            # The dock is at the same place on every page.
            places = [icon.box.center for _, icon in found]
            found += [(len(pages), icon) for icon in labels.named(seen) if icon.box.center not in places]
            pages.append(_texts(seen))
        if not found:
            return None
        if len(found) > 1:
            raise _two(labels.app, len(found))
        seen = await self._home()
        for _ in range(found[0][0]):
            seen = await self._turn(seen)
        there = labels.named(seen)
        return (there[0], seen) if len(there) == 1 else None

    async def _in_list(self, labels: _Labels, seen: Observation) -> tuple[Reading, Observation] | None:
        """Open the list of all apps and scroll through it to the icon, which is in front then."""
        home, screens = seen.window.package, [_texts(seen)]
        while len(screens) <= MOST_SCREENS:
            seen = await self._scroll(seen)
            if seen.window.package != home or _texts(seen) in screens:
                return None
            there = labels.named(seen)
            if len(there) > 1:
                raise _two(labels.app, len(there))
            if there:
                return there[0], seen
            screens.append(_texts(seen))
        return None

    async def _home(self) -> Observation:
        """Go to the home screen's first page and look at it."""
        await self._observer.end_look_ahead()
        await self._before_act()
        await self._device.key(Key.HOME)
        for _ in range(MOST_LOOKS):
            seen = await self._observer.observe(None)
            if is_home(seen.window.package or ""):
                return seen
        raise _no_home()  # a pinned app, a call: nothing there may be swiped or tapped

    async def _turn(self, seen: Observation) -> Observation:
        width, height = seen.size
        return await self._swipe(seen, Point(round(0.85 * width), height // 2), Point(round(0.15 * width), height // 2))

    async def _scroll(self, seen: Observation) -> Observation:
        width, height = seen.size
        return await self._swipe(seen, Point(width // 2, round(0.7 * height)), Point(width // 2, round(0.25 * height)))

    async def _swipe(self, seen: Observation, start: Point, end: Point) -> Observation:
        await self._before_act()
        await self._device.swipe(start, end, SWIPE_SECONDS)
        return await self._after(seen)

    async def _after(self, before: Observation) -> Observation:
        """Look at the screen after an act, whose effect may take a moment."""
        self._observer.look_ahead(before.frame)
        return await self._observer.observe(None)


def _texts(seen: Observation) -> Sequence[str]:
    """Return the texts that tell one page from another: its words, but no numbers, because a clock changes."""
    texts = (bare(reading.text) for reading in seen.readings)
    return sorted(text for text in texts if any(char.isalpha() for char in text))


def _no_home() -> AppNotFound:
    said = "The home screen of the phone did not come to the front."
    return AppNotFound(said, advice="Look at the phone, or name the app's package.", key="no_home")


def _two(app: str, count: int) -> AppNotFound:
    said = f"{count} icons are called {app!r}."
    return AppNotFound(said, advice="Name the package of the one that is meant.", key="two_icons", app=app, count=count)
