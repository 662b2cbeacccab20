"""What holds for the tests themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# What takes long to load, or opens what a pure test has no use for.
HEAVY = {
    *("numpy", "cv2", "onnxruntime", "rapidocr"),
    *("aiogram", "aiohttp", "telegram", "httpx", "httpx2", "mcp", "openai", "agents"),
    *("adbutils", "aiosqlite", "asyncpg", "dbos", "openpyxl", "typer"),
    *("simulator.phone.phone", "simulator.telegram", "bot.app.core", "bot.desk.desk"),
    *("tests.support.adb", "tests.support.lab", "tests.support.stage"),
}
COLLECT = """
import sys, pytest
code = pytest.main(["--collect-only", "-q", "-q", "-n", "0", "-p", "no:cacheprovider", sys.argv[1]])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


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


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize(
    "path",
    [
        "tests/agent_core/policies/test_safety.py",
        "tests/agent_core/test_tasks.py",
        "tests/bot/channels/chat/test_texts.py",
        "tests/knowledge/test_grounding.py",
        "tests/scheduler/times/test_times.py",
    ],
)
def test_a_pure_test_begins_without_loading_the_lab(path: str) -> None:
    """One test of a rule begins within a second or so; a conftest that imports the lab makes it five."""
    command = [sys.executable, "-c", COLLECT, path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    loaded = set(done.stderr.split())
    assert "agent_core" in loaded
    assert sorted(loaded & HEAVY) == []


async def test_a_database_is_filled_once_and_copied_and_its_statements_are_compiled_once(tmp_path: Path) -> None:
    """Half of the processor time of the tests of the desk went into both."""
    import sqlalchemy as sa

    from storage.engine import Database
    from storage.hosts import Phones
    from storage.tables import phones
    from tests.support.database import filled_sqlite
    from tests.support.statements import count

    filled, compiled = [], []

    async def fill(db: Database) -> None:
        filled.append(db)
        await Phones(db).saw({"S1": "Pixel"})

    for name in ("one.db", "another.db"):
        db = Database(await filled_sqlite(tmp_path / name, fill))
        async with db.read() as connection:
            once = sa.select(phones.c.serial, sa.literal_column("1").label("here"))
            assert [tuple(row) for row in await connection.execute(once)] == [("S1", 1)]
        compiled.append(count())
        await db.close()
    assert len(filled) == 1
    assert compiled[0] == compiled[1] > 0
