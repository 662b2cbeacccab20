"""What is installed: the files of the wheel, the extras, and the pinned versions with their hashes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path
from shutil import copytree, ignore_patterns
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_core.extras import PACKAGES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
TOP_LEVEL = ("agent_core", "bot", "knowledge", "scheduler", "simulator", "storage")
LOCKS = ("constraints.txt", "constraints-dev.txt", "constraints-build.txt")

_PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9][\w.+!]*)(?: ; [\w .'<>=!()]+)?")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}")


def pins(name: str) -> dict[str, str]:
    """The versions of a lock file. Each line is a comment, a version or a hash, and no version is without a hash."""
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text(encoding="utf-8").strip()):
        first, *hashes = block.replace(" \\\n", "\n").splitlines()
        if first.startswith("#"):
            continue
        pin = _PIN.fullmatch(first)
        assert pin is not None, first
        assert hashes, first
        assert [line for line in hashes if not _HASH.fullmatch(line)] == []
        found[pin["name"]] = pin["version"]
    return found


def test_the_lock_files_hold_versions_and_hashes_of_all_that_is_asked_for() -> None:
    runtime, dev, build = (pins(name) for name in LOCKS)
    groups = PROJECT["dependency-groups"]
    asked = [
        (runtime, [*PROJECT["project"]["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]),
        (dev, [one for one in (*groups["dev"], *groups["build"]) if isinstance(one, str)]),
        (build, [*groups["build"], *PROJECT["build-system"]["requires"]]),
    ]
    for locked, wanted in asked:
        for requirement in map(Requirement, wanted):
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement
    shared = dev.keys() & runtime.keys()
    assert {name: dev[name] for name in shared} == {name: runtime[name] for name in shared}
    assert {"pytest", "mypy", "ruff", "setuptools"}.isdisjoint(runtime)


def test_every_extra_is_known_by_what_is_imported_of_it() -> None:
    brought_by = packages_distributions()
    for extra, wanted in EXTRAS.items():
        named = {canonicalize_name(Requirement(one).name) for one in wanted}
        brings = {name: {canonicalize_name(one) for one in brought_by[name]} & named for name in PACKAGES[extra]}
        assert all(brings.values()), brings
        assert set().union(*brings.values()) == named
    assert set(PACKAGES) == set(EXTRAS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """The wheel of the files as they are, built beside them: what an earlier build has left must not get into it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in TOP_LEVEL:
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", PROJECT["project"]["readme"]):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=folder, capture_output=True, check=True)
    with ZipFile(next(folder.glob("dist/*.whl"))) as opened:
        yield opened


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (file for name in TOP_LEVEL for file in (ROOT / name).rglob("*"))
    assert held == {
        str(file.relative_to(ROOT)) for file in files if file.is_file() and file.parent.name != "__pycache__"
    }
    for ending in (".toml", ".otf", ".ttf", ".txt", ".mako"):
        assert any(name.endswith(ending) for name in held), ending


def test_the_wheel_says_under_which_licences_it_is_and_brings_them(wheel: ZipFile) -> None:
    info = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")).removesuffix("METADATA")
    metadata = message_from_bytes(wheel.read(f"{info}METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0 AND OFL-1.1"
    texts = [wheel.read(f"{info}licenses/{name}").decode() for name in metadata.get_all("License-File", [])]
    assert [sum(title in text for text in texts) for title in ("Apache License", "SIL OPEN FONT LICENSE")] == [1, 2]
    assert metadata.get_all("Provides-Extra") == list(EXTRAS)
    assert "](" not in metadata.get_payload()  # a link or a picture by a path leads nowhere on an index page
