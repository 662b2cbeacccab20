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
        """The configured name, else the model and the end of the serial, else the serial. "" for none."""
        model = self.models.get(serial, "").replace("_", " ").strip()
        return self.names.get(serial) or (f"{model} · {short_serial(serial)}" if model else serial)

    def list(self, serials: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.name(serial) for serial in serials)

    @property
    def known(self) -> tuple[str, ...]:
        """The serials of all that were seen or are named in the settings."""
        return tuple(dict.fromkeys((*self.names, *self.models)))

    def serial(self, written: str) -> str:
        """The phone that is meant: by its serial, its name, or its model where only one is of it.

        What names none, or several, comes back as it was written.
        """
        if written in self.names or written in self.models:
            return written
        plain = _plain(written)
        for said in (self.name, lambda serial: self.models.get(serial, "")):
            meant = [serial for serial in self.known if plain and _plain(said(serial)) == plain]
            if len(meant) == 1:
                return meant[0]
        return written


def _plain(name: str) -> str:
    return _BLANKS.sub("", name).casefold()
