"""The intent that ``am`` and ``cmd package`` take as arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.phone.commands.base import Call, JavaFailure

_FIELDS = {"-a": "action", "-d": "data", "-n": "component", "-p": "package"}
_SWITCHES = {"-W": "wait", "-S": "stop_first"}
_ONE_VALUE = frozenset(
    {"--user", "-f", "-t", "-i", "--display", "--windowingMode", "--receiver-permission", "-R", "-P"}
)
_TYPED_EXTRAS = frozenset(
    {"-e", "--es", "--ez", "--ei", "--el", "--ef", "--ed", "--eu", "--ecn", "--eia", "--eial", "--ela", "--esa"}
)


@dataclass(slots=True)
class Intent:
    action: str = ""
    data: str = ""
    component: str = ""
    package: str = ""
    categories: list[str] = field(default_factory=list)
    extras: dict[str, str] = field(default_factory=dict)
    wait: bool = False
    stop_first: bool = False

    def __str__(self) -> str:
        """As ``am`` echoes it."""
        shown = [
            self.action and f"act={self.action}",
            self.categories and f"cat=[{','.join(self.categories)}]",
            self.data and f"dat={self.data}",
            self.package and f"pkg={self.package}",
            self.component and f"cmp={self.component}",
            self.extras and "(has extras)",
        ]
        return "Intent { " + "".join(f"{piece} " for piece in shown if piece) + "}"


def read_intent(call: Call, arguments: list[str]) -> Intent:
    """JavaFailure where a value is missing. An empty value counts as missing: it does not survive the way to ``am``."""
    intent = Intent()
    rest = list(arguments)
    last = ""

    def value(name: str) -> str:
        if not rest or not rest[0]:
            raise JavaFailure("java.lang.IllegalArgumentException", f'Argument expected after "{name}"')
        return rest.pop(0)

    while rest:
        last = rest.pop(0)
        if last in _FIELDS:
            setattr(intent, _FIELDS[last], value(last))
        elif last == "-c":
            intent.categories.append(value(last))
        elif last in _TYPED_EXTRAS:
            key = value(last)
            intent.extras[key] = value(key)
        elif last in _ONE_VALUE:
            value(last)
        elif last in _SWITCHES:
            setattr(intent, _SWITCHES[last], True)
        elif not last.startswith("-"):
            _read_plain(intent, last)
        elif not last.startswith(("--", "-D", "-N")):
            raise JavaFailure("java.lang.IllegalArgumentException", f"Unknown option: {last}")
    return intent


def _read_plain(intent: Intent, word: str) -> None:
    """A last argument without an option: a component, a URI or a package."""
    if ":" in word:
        intent.data = word
        intent.action = intent.action or "android.intent.action.VIEW"
    elif "/" in word:
        intent.component = word
    else:
        intent.package = word
