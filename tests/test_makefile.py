"""What a clone is handled with: the words of the Makefile, and what git leaves alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.texts import system_language

ROOT = Path(__file__).parent.parent
LOCALES = ("PHONEDESK_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
# A stand-in for Python that makes a venv of itself, and whose pip reaches nothing.
PYTHON = """#!/bin/sh
case "$2" in
  venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  pip) echo "no network" >&2; exit 1 ;;
esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


FILES = ("pyproject.toml", "constraints.txt", "constraints-build.txt", "constraints-dev.txt")


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in LOCALES and "proxy" not in name.lower()}
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), *arguments]
    return subprocess.run(
        command, env=kept | environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LANG": "zh_CN.UTF-8"},
        {"LANG": "C.UTF-8"},
        {"LANG": "en_US.UTF-8"},
        {"LANG": "de_DE@euro"},
        {"LC_ALL": "", "LC_MESSAGES": "en_GB.UTF-8", "LANG": "zh_CN.UTF-8"},
        {"LC_ALL": "zh_TW", "LANG": "en_US.UTF-8"},
        {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"},
    ],
    ids=str,
)
def test_it_speaks_the_language_that_phonedesk_speaks(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOCALES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said = make("help", **environment).stdout
    assert bool(re.search("[\u4e00-\u9fff]", said)) is (system_language() == "zh")
    assert [line.split()[1] for line in said.splitlines()] == [
        "setup", "lock", "wheel", "demo", "unit", "test", "check", "eval",
    ]  # fmt: skip
    chosen = make("help", **environment, PHONEDESK_LANG="en").stdout
    assert chosen.startswith("make setup   install")


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_download_that_fails_says_what_to_look_at(tmp_path: Path, lang: str) -> None:
    for name in FILES:
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    proxies = {"https_proxy": "http://me:pa/s@s@10.0.0.1:7890", "ALL_PROXY": "me:secret@10.0.0.2:1080"}
    done = make("-C", str(tmp_path), "setup", f"PYTHON={python}", PHONEDESK_LANG=lang, **proxies)
    assert done.returncode != 0
    assert done.stdout.splitlines()[0].startswith("1/3 making" if lang == "en" else "1/3 建立")
    assert "PIP_INDEX_URL" in done.stderr
    assert "  https_proxy=http://***@10.0.0.1:7890\n  ALL_PROXY=***@10.0.0.2:1080\n" in done.stderr
    assert not re.search("secret|pa/s|me:", done.stderr)
    without = make("-C", str(tmp_path), "setup", f"PYTHON={python}", PHONEDESK_LANG=lang).stderr
    assert ("no proxy is set" if lang == "en" else "没有设置代理") in without
    assert not (tmp_path / ".venv/.installed").exists()


@pytest.mark.parametrize("target", ["setup", "demo", "eval", "wheel", "unit", "test", "check"])
def test_tools_for_tests_are_installed_by_what_needs_them(tmp_path: Path, target: str) -> None:
    for name in FILES:
        (tmp_path / name).touch()
    planned = make("-C", str(tmp_path), "--dry-run", target, f"PYTHON={sys.executable}").stdout
    assert "-r constraints.txt -r constraints-build.txt" in planned
    assert ("-r constraints-dev.txt" in planned) is (target in {"unit", "test", "check"})


def test_modules_are_compiled_once_for_all_processes_of_the_tests() -> None:
    """Loading the tests takes a third less, wherever containers tell Python to write no bytecode."""
    told = make("--eval", 'told: ; @echo "<$$PYTHONDONTWRITEBYTECODE>"', "told", PYTHONDONTWRITEBYTECODE="1")
    assert told.stdout == "<>\n"


def test_git_leaves_alone_what_the_docs_have_people_make(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    written = re.compile(
        r"(?:PHONEDESK_DATA_DIR=|--(?:keep|out|marks|gif|sheet|html|jsonl|csv) |kb (?:import|export) |--file=)"
        r"([\w.-]+\b)"
    )
    found = {name for page in pages for name in written.findall(page.read_text(encoding="utf-8"))}
    made = {name for name in found if "." in name or "-" in name or "_" in name}
    assert {"try-data", "eval-output", "answers.csv", "faq.xlsx", "qq.kit.json"} <= made
    made |= {"demo-output/demo.gif", ".env", ".env.old", "phonedesk.toml", "data/desk.sqlite3", "ADBKeyboard.apk"}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    for name in ("try-data", "eval-output"):
        (tmp_path / name).mkdir()
    asked = ["git", "-C", str(tmp_path), "check-ignore", *sorted(made)]
    ignored = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    assert sorted(made - set(ignored)) == []
