"""Typing through the clipboard, by a small program that the phone runs. No app has to be installed.

``helper/Paste.smali`` is the program's source and describes what it does. It is pushed once, under a name with its
digest, and run by ``app_process`` as the shell user. It has run only against stand-ins of Android's classes, not yet on
a real phone. So what it types is read back like every text, and a phone on which it fails is typed on in another way.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from agent_core.devices.adb.parse import first_line
from agent_core.devices.adb.transport import ShellResult
from agent_core.devices.shell import AND, OR, PIPE, Raw, command_line
from agent_core.errors import LeaseLost, TextInputFailed

PROGRAM = Path(__file__).with_name("helper") / "paste.jar"
CLASS = "phonedesk.Paste"
INSTALLED = "phonedesk-installed"  # printed once the program is on the phone
FOLDER = "/data/local/tmp"
CHUNK_BYTES = 40_000  # of UTF-8 in one paste; base64 makes 53,336 of it, and adbd takes 65,535 with all the rest
PASTE_MILLISECONDS = 250  # in which the app fetches the text, before the clipboard is put back
PASTE_SECONDS = 20.0
KEYCODE_PASTE = "279"
DONE = "phonedesk-paste: done"
NOT_RUN = 70  # the exit status of the program if the clipboard did not take the text
TAKEN = 9  # the exit status of the command if another process has the phone

Command = tuple[str | Raw, ...]


@lru_cache(maxsize=1)
def remote_path() -> str:
    """Return the path of the program on a phone."""
    return f"{FOLDER}/phonedesk-paste-{sha256(PROGRAM.read_bytes()).hexdigest()[:16]}.jar"


def install() -> Command:
    """Return the command that puts the program there, whole or not at all, and prints INSTALLED if it is there."""
    path = remote_path()
    encoded = base64.b64encode(PROGRAM.read_bytes()).decode()
    store = ("echo", encoded, PIPE, "base64", "-d", Raw(">"), f"{path}.new", AND, "mv", f"{path}.new", path)
    return (*store, AND, "echo", INSTALLED)


def paste(text: str, still_ours: Command) -> Command:
    """Return the command that pastes ``text``. ``still_ours`` succeeds if the phone is still ours; it is asked again
    directly before the key, because the program takes a while to start."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
    guard = ((*still_ours, OR, "exit", str(TAKEN)),) if still_ours else ()
    command = command_line(*guard, ("input", "keyevent", KEYCODE_PASTE))
    program = ("app_process", "/", CLASS, encoded, str(PASTE_MILLISECONDS), command)
    return (f"CLASSPATH={remote_path()}", *program)


def probe() -> str:
    """Return a line that pushes the program and runs it without pasting; ``check`` reads its output.

    The text is in the clipboard for a moment, and a key is pressed that no window reacts to.
    """
    encoded = base64.b64encode(b"phonedesk").decode()
    program = ("app_process", "/", CLASS, encoded, "0", "input keyevent 0")
    return command_line(install(), (f"CLASSPATH={remote_path()}", *program))


def taken() -> LeaseLost:
    """Return the error for a phone on which another process types now."""
    return LeaseLost("Somebody else has taken the keyboard of the phone, or put it back.", key="keyboard_taken")


def check(result: ShellResult) -> None:
    """Raise TextInputFailed if the text was not pasted; ``may_repeat`` says that certainly nothing was.

    Raises LeaseLost if another process has the phone.
    """
    done = DONE in result.out
    if done and result.code == TAKEN:
        raise taken()
    if done and result.code == 0 and "Exception" not in result.text:
        return
    why = first_line(result.err) or first_line(result.out) or f"exit code {result.code}"
    error = TextInputFailed(f"The text could not be pasted: {why}.", key="text_not_pasted", why=why)
    never_ran = result.code in {NOT_RUN, 126, 127} or "ClassNotFoundException" in result.text
    error.may_repeat = never_ran and not done
    raise error
