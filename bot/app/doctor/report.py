"""The result of a check, and the doctor's report on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agent_core.proxies import Route


class CheckStatus(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DoctorVerdict:
    """The verdict of one check. ``case`` names the text ``<check>.<case>``; its advice is ``<check>.<case>_advice``.

    ``routes``: the routes of the check's requests; the person is informed of the proxies.
    """

    status: CheckStatus
    case: str
    values: Mapping[str, Any] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()

    def by(self, *routes: Route) -> DoctorVerdict:
        return replace(self, routes=tuple(dict.fromkeys(routes)))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check's result for a person. ``check`` is stable, the rest is in the person's language.

    ``after``: the check because of which this one was not made, "" if it was. ``mending``: a repair was made, or tried.
    """

    check: str
    title: str
    status: CheckStatus
    seen: str
    advice: str = ""
    after: str = ""
    mending: bool = False

    def as_json(self) -> dict[str, str]:
        return {"check": self.check, "status": self.status.value, "seen": self.seen, "advice": self.advice}


def ok(case: str, **values: Any) -> DoctorVerdict:
    return DoctorVerdict(CheckStatus.OK, case, values)


def note(case: str, **values: Any) -> DoctorVerdict:
    """Return a verdict that is neither good nor bad: a fact worth knowing."""
    return DoctorVerdict(CheckStatus.NOTE, case, values)


def warning(case: str, **values: Any) -> DoctorVerdict:
    """Return a verdict for something that works, but not at its best; there is an advice."""
    return DoctorVerdict(CheckStatus.WARNING, case, values)


def failed(case: str, **values: Any) -> DoctorVerdict:
    """Return a verdict for something that stops a run; there is an advice."""
    return DoctorVerdict(CheckStatus.FAILED, case, values)


def skipped(case: str, **values: Any) -> DoctorVerdict:
    return DoctorVerdict(CheckStatus.SKIPPED, case, values)
