"""Bringing an app to the front by any name that people use for it.

A name is looked up among the known names (``agent_core.apps.names``), then among the labels that were found on this
phone before; last, its icon is searched for on the home screen, and the package that it opens is remembered.
"""

from __future__ import annotations

from collections.abc import Collection

from agent_core.apps.names import bare, is_identifier, known_as, packages_named, resolve_app
from agent_core.apps.profile import profile
from agent_core.devices.base import Device, Key, TouchWatch
from agent_core.errors import AppNotFound, CommandFailed
from agent_core.loop.home_screen import HomeScreen
from agent_core.perception.observer import Observer
from agent_core.perception.popups import stands_over_apps
from agent_core.ports import Lease, Ledger
from agent_core.session import Session


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
