"""The program that pastes, assembled anew from its source, and run with stand-ins of Android's classes.

There is no Android here. The shipped dex is translated to Java's bytecode and run by Java, so that what is tested is
the program that phones get. The assembler and the translator are Debian's (``libsmali-java``, ``dexdump``,
``enjarify``, ``default-jdk-headless``).
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from agent_core.devices.adb.helper import build
from agent_core.devices.adb.paste import CLASS, PROGRAM

pytestmark = pytest.mark.acceptance  # the assembler is a process that the product starts

SETTERS = {  # by the version of Android: parameters of setPrimaryClip and of getPrimaryClip
    "7": ("ClipData c, String p", "String p"),
    "10": ("ClipData c, String p, int u", "String p, int u"),
    "13": ("ClipData c, String p, String a, int u", "String p, String a, int u"),
    "14": ("ClipData c, String p, String a, int u, int d", "String p, String a, int u, int d"),
    "a maker's": (
        "ClipData c, String p, String a, String q, int u, int d, boolean b",
        "String p, String a, String q, int u, int d, boolean b",
    ),
}

CLASSES = {
    "android/util/Base64": """package android.util;
public class Base64 {
  public static byte[] decode(String text, int flags) { return java.util.Base64.getDecoder().decode(text); }
}""",
    "android/content/ClipData": """package android.content;
public class ClipData {
  public static class Item {
    final CharSequence text; Item(CharSequence text) { this.text = text; }
    public CharSequence getText() { return text; }
  }
  final Item item; ClipData(CharSequence text) { item = new Item(text); }
  public static ClipData newPlainText(CharSequence label, CharSequence text) { return new ClipData(text); }
  public int getItemCount() { return 1; }
  public Item getItemAt(int at) { return item; }
}""",
    "android/os/IBinder": "package android.os; public interface IBinder {}",
    "android/os/ServiceManager": """package android.os;
public class ServiceManager {
  public static IBinder getService(String name) {
    return name.equals("clipboard") ? new android.content.IClipboard.Stub() : null;
  }
}""",
}
CLIPBOARD = """package android.content;
import java.nio.file.*;
public interface IClipboard {
  void setPrimaryClip(SETTER) throws Exception;
  ClipData getPrimaryClip(GETTER) throws Exception;
  class Stub implements IClipboard, android.os.IBinder {
    static final Path FILE = Paths.get("clipboard"), LOG = Paths.get("log");
    public static IClipboard asInterface(android.os.IBinder binder) { return (IClipboard) binder; }
    static void check(String p) {
      if (!"com.android.shell".equals(p)) throw new SecurityException("uid 2000 is not " + p);
      if (Files.exists(Paths.get("refuses"))) throw new SecurityException("clipboard denied");
    }
    public void setPrimaryClip(SETTER) throws Exception {
      check(p);
      if (Files.exists(Paths.get("ignores"))) return;
      Files.writeString(FILE, c.getItemAt(0).getText());
      Files.writeString(LOG, c.getItemAt(0).getText() + "|", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    public ClipData getPrimaryClip(GETTER) throws Exception {
      check(p);
      return Files.exists(FILE) ? ClipData.newPlainText("", Files.readString(FILE)) : null;
    }
  }
}"""
NASTY = '您好，"it\'s" $(reboot) `id` %s\n第二行 😀👨‍👩‍👧 \\ end '


def need(*programs: str) -> None:
    """Skip the test if one of these is not installed."""
    missing = [one for one in programs if not shutil.which(one)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped program as Java's bytecode."""
    need("enjarify", "javac", "java")
    folder = tmp_path_factory.mktemp("program")
    with zipfile.ZipFile(io.BytesIO(PROGRAM.read_bytes())) as archive:
        archive.extract("classes.dex", folder)
    subprocess.run(
        ["enjarify", "classes.dex", "-o", "program.jar"],
        cwd=folder,
        env={**os.environ, "PYTHON": "/usr/bin/python3"},  # Debian's, which has its modules
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder / "program.jar"


def android(folder: Path, version: str) -> Path:
    """Compile the classes of Android that the program uses, with the clipboard of this version."""
    setter, getter = SETTERS[version]
    clipboard = CLIPBOARD.replace("SETTER", setter).replace("GETTER", getter)
    files = []
    for name, source in {**CLASSES, "android/content/IClipboard": clipboard}.items():
        file = folder / "android-classes" / f"{name}.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        files.append(str(file))
    subprocess.run(["javac", *files], check=True, capture_output=True, timeout=120)
    return folder / "android-classes"


def run(program: Path, classes: Path, text: str, command: str) -> subprocess.CompletedProcess[bytes]:
    """Run it in the folder of the classes' parent, which holds the clipboard."""
    encoded = base64.b64encode(text.encode()).decode()
    return subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", f"{program}:{classes}", CLASS, encoded, "10", command],
        cwd=classes.parent,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("version", SETTERS)
def test_the_command_runs_while_the_clipboard_holds_the_text(translated: Path, tmp_path: Path, version: str) -> None:
    classes = android(tmp_path, version)
    clipboard = tmp_path / "clipboard"
    clipboard.write_text("the owner's")
    done = run(translated, classes, NASTY, "cat clipboard; exit 9")
    assert done.returncode == 9
    assert done.stdout.decode() == f"{NASTY}phonedesk-paste: done\n"
    assert clipboard.read_text() == "the owner's"


def test_a_clipboard_that_was_empty_is_empty_again(translated: Path, tmp_path: Path) -> None:
    done = run(translated, android(tmp_path, "14"), "text", "cat clipboard")
    assert (done.returncode, done.stdout) == (0, b"textphonedesk-paste: done\n")
    assert (tmp_path / "clipboard").read_text() == ""


@pytest.mark.parametrize("how", ["refuses", "ignores"])
def test_nothing_is_run_with_a_clipboard_that_does_not_hold_the_text(
    translated: Path, tmp_path: Path, how: str
) -> None:
    classes = android(tmp_path, "13")
    (tmp_path / "clipboard").write_text("a secret")
    (tmp_path / how).touch()
    done = run(translated, classes, "text", "touch was-run")
    assert done.returncode == 70
    assert b"done" not in done.stdout
    assert b"SecurityException" in done.stderr
    assert not (tmp_path / "was-run").exists()
    assert (tmp_path / "clipboard").read_text() == "a secret"


def test_broken_arguments_change_nothing(translated: Path, tmp_path: Path) -> None:
    classes = android(tmp_path, "13")
    for arguments in ([], ["%%%", "1", "true"], ["dGV4dA==", "soon", "true"]):
        done = subprocess.run(
            ["java", "-cp", f"{translated}:{classes}", CLASS, *arguments],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 70
    assert not (tmp_path / "clipboard").exists()


def test_the_shipped_program_is_what_its_source_assembles_to() -> None:
    if not build.SMALI.exists():
        pytest.skip("libsmali-java is not installed")
    need("java")
    assert build.assemble() == PROGRAM.read_bytes(), "run python -m agent_core.devices.adb.helper.build"


def test_the_program_is_sound_dex(tmp_path: Path) -> None:
    need("dexdump")
    with zipfile.ZipFile(PROGRAM) as archive:
        assert archive.namelist() == ["classes.dex"]
        archive.extract("classes.dex", tmp_path)
    told = subprocess.run(
        ["dexdump", "-d", tmp_path / "classes.dex"], capture_output=True, check=True, text=True, timeout=60
    ).stdout
    assert "Class descriptor  : 'Lphonedesk/Paste;'" in told
    assert "'main'" in told
