"""The pages for engineers name files, functions and classes: each of them is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent_core", "bot", "knowledge", "scheduler", "simulator", "storage", "tests")
PAGES = sorted([*ROOT.glob("docs/development/*.md"), *(ROOT / name / "README.md" for name in PACKAGES)])

# ``bot/app/core.py``, ``bot/app/core.py:Core.agent``, ``bot/desk/``: in the text, in tables and in drawings alike.
_NAMED = re.compile(rf"(?<![\w./-])((?:{'|'.join(PACKAGES)})/[\w./-]*?)(?::([A-Za-z_][\w.]*?))?\.?(?![\w./:-])")


def named(text: str) -> list[tuple[str, str]]:
    """Return the paths that a text names, each with what it names inside of the file, or ""."""
    return _NAMED.findall(text)


def _names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield what a module or class defines, and what its classes define behind a dot."""
    for one in body:
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name, body=inner):
                yield prefix + name
                yield from _names(inner, f"{prefix}{name}.")
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


@cache
def defined(path: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(path.read_text(encoding="utf-8")).body))


def missing(text: str) -> list[str]:
    """Return what a text names and is not there."""
    return [
        f"{path}:{name}" if name else path
        for path, name in named(text)
        if not (ROOT / path).exists() or (name and name not in defined(ROOT / path))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert named(text)
    assert missing(text) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_links_of_a_package_lead_somewhere(package: str) -> None:
    """``tests/test_docs.py`` looks after the links of the documentation."""
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / package / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / package / link).exists(), link


def test_what_is_not_there_is_found() -> None:
    text = "`bot/app/core.py:Core.agent`, bot/app/core.py:Core.agents → bot/a.py, `bot/desk/` and storage/ids.py."
    assert missing(text) == ["bot/app/core.py:Core.agents", "bot/a.py"]
    assert len(named(text)) == 5


def test_both_languages_name_the_same_places() -> None:
    for page in ROOT.glob("docs/development/*.md"):
        if not page.name.endswith(".zh-CN.md"):
            chinese = page.with_suffix(".zh-CN.md").read_text(encoding="utf-8")
            assert set(named(page.read_text(encoding="utf-8"))) == set(named(chinese)), page.name
