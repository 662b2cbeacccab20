"""What phones are called for people: one name everywhere, and found again by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_BLANKS = re.compile(r"[\s_·•.\-]+")
SHORT = 4  # letters of a serial


def short_serial(serial: str) -> str:
    """As much of a serial as tells phones of one model apart: its end, of an address the last number and the port."""
    host, colon, port = serial.rpartition(":")
    return f"{host.rpartition('.')[2]}:{port}" if colon else serial[-SHORT:]


@dataclass(frozen=True, slots=True)
class PhoneBook:
    """``names``: what the settings call them, by serial; ``models``: those that were seen, with their models."""

    names: Mapping[str, str]
    models: Mapping[str, str]

    def name(self, serial: str) -> str:
        """Return the configured name, else the model, with the end of the serial if several phones that were seen are
        of this model, else the serial. "" for none."""
        if name := self.names.get(serial):
            return name
        model = self._model(serial)
        alone = not any(other != serial and self._model(other) == model for other in self.models)
        return model if model and alone else self._long(serial)

    def _model(self, serial: str) -> str:
        return self.models.get(serial, "").replace("_", " ").strip()

    def _long(self, serial: str) -> str:
        """The model and the end of the serial: what the phone is called if another one of its model is there."""
        model = self._model(serial)
        return f"{model} · {short_serial(serial)}" if model else serial

    def list(self, serials: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.name(serial) for serial in serials)

    @property
    def known(self) -> tuple[str, ...]:
        """The serials of all that were seen or are named in the settings."""
        return tuple(dict.fromkeys((*self.names, *self.models)))

    def serial(self, written: str) -> str:
        """The phone that is meant: by its serial, its name with or without the end of its serial, or its model if only
        one is of it.

        What names none, or several, comes back as it was written.
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
