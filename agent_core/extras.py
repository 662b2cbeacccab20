"""Extras: parts that not everybody needs are installed by ``phonedesk[NAME]``, see ``[project.optional-dependencies]``.

Code that needs the packages of an extra calls ``require`` before it imports them. Nothing is imported here.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from agent_core.errors import ConfigError

Extra = Literal["demo", "lab", "mcp", "notify", "ocr", "planner", "postgres"]

# The packages that our code imports from each extra.
PACKAGES: Mapping[Extra, tuple[str, ...]] = {
    "demo": ("aiogram",),
    "lab": ("tree_sitter", "tree_sitter_json", "tree_sitter_toml"),
    "mcp": ("mcp", "mcp_types", "starlette", "uvicorn"),
    "notify": ("apprise",),
    "ocr": ("onnxruntime", "rapidocr"),
    "planner": ("agents", "openai"),
    "postgres": ("asyncpg",),
}


class ExtraMissing(ConfigError):
    """A part of the product is asked for whose packages are not installed."""

    kind = "config.extra"

    def __init__(self, extra: Extra) -> None:
        command = install_command(extra)
        super().__init__(
            f"This needs the extra [{extra}], which is not installed.",
            advice=f"Install it: {command}",
            key="extra_missing",
            extra=extra,
            command=command,
        )


def installed(extra: Extra) -> bool:
    """Return whether the packages of the extra are there; they are not loaded."""
    return all(find_spec(name) is not None for name in PACKAGES[extra])


def require(extra: Extra) -> None:
    """Raise ExtraMissing if the extra is not installed."""
    if not installed(extra):
        raise ExtraMissing(extra)


def install_command(extra: Extra) -> str:
    """Return the command line that adds the extra to this very installation."""
    pip = (sys.executable, "-m", "pip", "install")
    clone = Path(__file__).parents[1]
    if (clone / "pyproject.toml").is_file():
        return shlex.join((*pip, "--editable", f"{clone}[{extra}]"))
    wheel = f"phonedesk-{metadata.version('phonedesk')}-py3-none-any.whl"
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():  # it has no pip, and removes extras that are not named again
        wanted = sorted({extra, *filter(installed, PACKAGES)})
        return shlex.join(("uv", "tool", "install", "--force", f"{wheel}[{','.join(wanted)}]"))
    return shlex.join((*pip, f"{wheel}[{extra}]"))
