"""What commands print: plain data for programs, and new secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from bot.channels.cli.terminal.console import Console, Text, print_json

Json = Annotated[bool, typer.Option("--json")]


def as_plain_data(view: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as the JSON outputs show them: times in ISO 8601."""
    return asdict(view, dict_factory=lambda fields: {name: _plain_value(value) for name, value in fields})


def _plain_value(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain_value(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else value


def tell_secret(name: str, secret: str, of: Mapping[str, Any], said: str, *, as_json: bool) -> None:
    """Print a new secret, which is shown this once: alone on standard output, with ``said`` on standard error.

    name, of: in the JSON output it has this name, and the fields of what it belongs to follow.
    """
    if as_json:
        print_json({name: secret, **of})
        return
    Console().print(secret, soft_wrap=True)
    Console(stderr=True).print(Text(said))
