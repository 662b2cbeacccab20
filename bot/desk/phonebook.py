"""Phones' names for people: the same one everywhere, and the way back from a name to the phone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_BLANKS = re.compile(r"[\s_·•.\-]+")
SHORT = 4  # letters of a serial


def short_serial(serial: str) -> str:
    """Return the end of a serial, which tells phones of one model apart; of an address the last number and the port."""
    host, colon, port = serial.rpartition(":")
    return f"{host.rpartition('.')[2]}:{port}" if colon else serial[-SHORT:]


@dataclass(frozen=True, slots=True)
class PhoneBook:
    """The names of phones. ``names``: those in the settings, by serial. ``models``: of all phones that were seen."""

    names: Mapping[str, str]
    models: Mapping[str, str]

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
        return tuple(dict.fromkeys((*self.names, *self.models)))

    def serial(self, written: str) -> str:
        """Return the serial of the phone with this serial, name (with or without the end of its serial) or model.

        Returns ``written`` if it fits no phone or several.
        """
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
