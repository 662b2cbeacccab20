"""Phones' names for people: the same one everywhere, and the way back from a name to the phone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agent_core.devices.base import DeviceEntry
from storage.engine import Database
from storage.hosts import Phones

_BLANKS = re.compile(r"[\s_·•.\-]+")
SHORT = 4  # letters of a serial

T = TypeVar("T")


def short_serial(serial: str) -> str:
    """Return the end of a serial, which tells phones of one model apart; of an address the last number and the port."""
    host, colon, port = serial.rpartition(":")
    return f"{host.rpartition('.')[2]}:{port}" if colon else serial[-SHORT:]


@dataclass(frozen=True, slots=True)
class PhoneBook:
    """The names of phones.

    names: those in the settings, by serial or by another name of the phone there.
    models: of all phones that were seen, by serial.
    addresses: the serials of the phones that have other names in adb, too (network addresses), by these names.
    """

    names: Mapping[str, str]
    models: Mapping[str, str]
    addresses: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", self.by_serial(self.names))

    def by_serial(self, settings: Mapping[str, T]) -> dict[str, T]:
        """Return settings of phones by serial, which the owner may have written by address. The serial goes first."""
        return {**{self.addresses.get(key, key): value for key, value in settings.items()}, **settings}

    def name(self, serial: str) -> str:
        """Return the configured name, else the model, else the serial; "" for the serial "".

        If several phones of the model were seen, the end of the serial is added to it.
        """
        if name := self.names.get(serial):
            return name
        model = self._model(serial)
        alone = not any(other != serial and self._model(other) == model for other in self.models)
        return model if model and alone else self._long(serial)

    def _model(self, serial: str) -> str:
        return self.models.get(serial, "").replace("_", " ").strip()

    def _long(self, serial: str) -> str:
        """Return the model with the end of the serial, which is the name if there are several phones of the model."""
        model = self._model(serial)
        return f"{model} · {short_serial(serial)}" if model else serial

    def list(self, serials: Iterable[str]) -> tuple[str, ...]:
        """Return the names of these phones."""
        return tuple(self.name(serial) for serial in serials)

    @property
    def known(self) -> tuple[str, ...]:
        """The serials of all that were seen or are named in the settings."""
        return tuple(one for one in dict.fromkeys((*self.names, *self.models)) if one not in self.addresses)

    def serial(self, written: str) -> str:
        """Return the serial of the phone with this serial, address, name (with or without the end of its serial) or
        model.

        Returns ``written`` if it fits no phone or several.
        """
        if written in self.addresses:
            return self.addresses[written]
        if written in self.names or written in self.models:
            return written
        plain = _plain(written)
        for said in (self.name, self._long, self._model):
            meant = [serial for serial in self.known if plain and _plain(said(serial)) == plain]
            if len(meant) == 1:
                return meant[0]
        return written


def _plain(name: str) -> str:
    return _BLANKS.sub("", name).casefold()


async def book_of(
    db: Database, names: Mapping[str, str], entries: Sequence[DeviceEntry] = (), *, usual: str = ""
) -> PhoneBook:
    """Return the names of the phones that are attached now (``entries``) and of all phones seen before.

    names: the names in the settings. usual: the phone that the settings name, seen or not.
    """
    async with db.one_view():
        seen, known = await Phones(db).models(), await Phones(db).addresses()
    now = {entry.serial: entry.model or seen.get(entry.serial, "") for entry in entries}
    addresses = {
        **known,
        **{name: entry.serial for entry in entries for name in entry.transports},
    }
    # A name in adb that another phone has now, or that only this phone uses, is not an address.
    there = {entry.serial for entry in entries}
    addresses = {name: serial for name, serial in addresses.items() if name != serial and name not in there}
    models = {**({usual: seen.get(usual, "")} if usual and usual not in addresses else {}), **seen, **now}
    return PhoneBook(names, models, addresses)
