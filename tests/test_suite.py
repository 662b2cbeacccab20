"""What holds for the tests themselves."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def imported(path: Path) -> set[str]:
    """Return the full names of what a file imports anywhere: modules, and what is taken from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def test_no_file_imports_a_test_module() -> None:
    """What tests share is in a ``conftest.py``, in ``tests/support`` or in a helper module beside them."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in TESTS.rglob("test_*.py")}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in TESTS.rglob("*.py")
        for name in imported(path)
        if name in modules or name.rpartition(".")[0] in modules
    }
    assert len(modules) > 300
    assert sorted(wrong) == []
