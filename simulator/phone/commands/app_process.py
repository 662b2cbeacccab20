"""``app_process`` with the one program that it knows: phonedesk's, which pastes (``helper/Paste.smali``).

Like Android it runs the file that CLASSPATH names, if the class is in it. A file that is not, byte for byte, the
program that is shipped has no such class here.
"""

from __future__ import annotations

import base64
import binascii

from agent_core.devices.adb.paste import CLASS, DONE, NOT_RUN, PROGRAM
from simulator.phone.commands.base import Call, command

ABORTED, KILLED = 134, 137


@command("app_process")
async def app_process(call: Call) -> int:
    arguments = [argument for argument in call.arguments if not argument.startswith("-D")]
    if len(arguments) < 2:
        call.err("Error: no class name or --zygote supplied.\n")
        return ABORTED
    name, path = arguments[1], call.variables.get("CLASSPATH", "")
    found = call.files.stat(path) if path.startswith("/") else None
    code = call.files.read(path) if found and not found.is_folder else b""
    if name != CLASS or code != PROGRAM.read_bytes():
        call.err(
            f'java.lang.ClassNotFoundException: Didn\'t find class "{name}" on path: DexPathList'
            f'[[zip file "{path}"],nativeLibraryDirectories=[/system/lib64]]\nAborted\n'
        )
        return ABORTED
    return await _paste(call, arguments[2:])


async def _paste(call: Call, arguments: list[str]) -> int:
    """What the program's source says."""
    try:
        text = base64.b64decode(arguments[0], validate=True).decode()
        milliseconds, line = int(arguments[1]), arguments[2]
    except (IndexError, ValueError, binascii.Error) as error:
        call.err(f"java.lang.IllegalArgumentException: {error}\n")
        return NOT_RUN
    phone, before = call.phone, call.phone.clipboard
    if phone.clipboard_fault() == "killed":
        call.err("Killed\n")
        return KILLED
    if phone.clipboard_fault() == "denied":
        call.err("java.lang.SecurityException: Package com.android.shell does not belong to 2000\n")
        return NOT_RUN
    if phone.clipboard_fault() != "ignored":
        phone.clipboard = text
    if phone.clipboard != text:
        call.err("java.lang.SecurityException: the clipboard does not hold the text\n")
        return NOT_RUN
    try:
        status, output = await call.run(line)
        call.out(output)
        if phone.clipboard_fault() == "killed_late":
            call.err("Killed\n")
            return KILLED  # the text stays in the clipboard
        await phone.pass_time(milliseconds / 1000)
    except BaseException:
        phone.clipboard = before
        raise
    phone.clipboard = before
    call.line(DONE)
    return status
