"""Finds out who has written by the phone's notifications alone, for watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Notification
from agent_core.perception.compare import fold, same_name
from agent_core.sweep.forms import told_by
from agent_core.sweep.result import Aside
from agent_core.sweep.rows import aside_of, digest, own_notes, whole_name


@dataclass(frozen=True, slots=True)
class Noted:
    """The writers of new messages, as the notifications name them.

    contacts: each with a state that changes when they write again, as far as the phone reports the time.
    nameless: the state of notifications about messages of unknown senders; "" if there are none.
    """

    contacts: Mapping[str, str] = field(default_factory=dict)
    nameless: str = ""


def noted(
    notes: Sequence[Notification],
    profile: AppProfile,
    *,
    known: Sequence[str] = (),
    targets: Sequence[str] | None = None,
    people: Sequence[str] = (),
) -> Noted:
    """Read this app's notifications among all of the phone's.

    known: complete names of contacts.
    targets: who is wanted; None for every contact that is neither a group nor an account of the app.
    people: are never taken for groups.
    """
    contacts: dict[str, list[str]] = {}
    nameless: list[str] = []
    for note in own_notes(notes, profile):
        said = f"{note.key}|{fold(note.text)}|{note.updated_ms}"
        told = told_by(note, profile, known)
        row = told.row
        called = whole_name(row, known, (), ()) if row is not None else None
        if row is None or called is None:  # hidden, of several people, or a name that is cut off
            nameless += [said] if told.messages else []
        elif (why := aside_of(row, called, known, profile, people)) is not None:
            nameless += [said] if why is Aside.LOOK_ALIKE else []  # the look at the list tells people of it
        elif targets is None or any(same_name(called, name) for name in targets):
            contacts.setdefault(called, []).append(said)
    states = {called: digest("note", *sorted(said)) for called, said in contacts.items()}
    return Noted(states, digest("nameless", *sorted(nameless)) if nameless else "")
