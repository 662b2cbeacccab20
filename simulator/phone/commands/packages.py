"""``pm`` and ``cmd package``: what is installed, and which activity starts it."""

from __future__ import annotations

import io
import re
import zipfile

from simulator.phone.commands.activity import component, whole_activity
from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command
from simulator.phone.commands.intents import Intent, read_intent
from simulator.phone.port import InputRefused, InstalledApp

_PACKAGE = re.compile(rb"(?:com|org|net|cn)(?:\.[a-zA-Z]\w*)+")
_MATCH = "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true"


def is_system(app: InstalledApp) -> bool:
    if app.package == "com.android.adbkeyboard":  # installed by hand, whatever its name
        return False
    return app.package == "android" or app.package.startswith(("com.android.", "com.google.android."))


def code_path(app: InstalledApp) -> str:
    return f"/{'system' if is_system(app) else 'data'}/app/{app.package}-1/base.apk"


@command("pm")
async def pm(call: Call) -> int:
    verb = call.shifted()
    if verb == "list":
        return _list(call)
    if verb in {"path", "clear", "enable", "grant", "revoke"}:
        return await _about_one(call, verb)
    if verb in {"resolve-activity", "query-activities"}:
        return _activities(call, verb)
    if verb in {"install", "uninstall"}:
        return _install(call) if verb == "install" else _uninstall(call)
    call.err(f"Unknown command: {verb}\n" if verb else "Package manager (package) commands:\n")
    return 255


def _install(call: Call) -> int:
    """``pm install [-r] [-t] … PATH``. A file is an app if it is a ZIP with a manifest that names a package."""
    try:
        call.phone.check_may_change("apps")
    except InputRefused as refused:
        raise CommandFailure(f"Failure [{refused}]") from None
    paths = [argument for argument in call.arguments if not argument.startswith("-")]
    if not paths:
        raise CommandFailure("Error: no package specified")
    try:
        with zipfile.ZipFile(io.BytesIO(call.files.read(call.path(paths[-1])))) as archive:
            manifest = archive.read("AndroidManifest.xml")
    except OSError as error:
        said = f"Unable to open file: {paths[-1]}\nError: java.lang.IllegalArgumentException: {error.strerror}"
        raise CommandFailure(said) from None
    except (KeyError, zipfile.BadZipFile):
        said = f"INSTALL_PARSE_FAILED_NOT_APK: Failed to parse {paths[-1]}"
        raise CommandFailure(f"Failure [{said}]") from None
    # The strings of binary XML are UTF-8 or UTF-16; without every second byte both read as ASCII.
    named = _PACKAGE.search(manifest) or _PACKAGE.search(manifest.replace(b"\0", b""))
    if named is None:
        raise CommandFailure("Failure [INSTALL_PARSE_FAILED_MANIFEST_MALFORMED]")
    call.phone.install(named[0].decode())
    call.line("Success")
    return 0


def _uninstall(call: Call) -> int:
    names = [argument for argument in call.arguments if not argument.startswith("-") and argument != "0"]
    if not names or not call.phone.uninstall(names[0]):
        raise CommandFailure("Failure [DELETE_FAILED_INTERNAL_ERROR]")
    call.line("Success")
    return 0


def _list(call: Call) -> int:
    what = call.shifted()
    if what in {"users", "features", "libraries"}:
        call.out({"users": "Users:\n\tUserInfo{0:Owner:c13} running\n"}.get(what, ""))
        return 0
    if what not in {"packages", "package"}:
        raise CommandFailure(f"Error: unknown list type '{what}'", 255)
    wanted = ""
    arguments = list(call.arguments)
    flags = []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--user":
            del arguments[:1]
        elif argument.startswith("-"):
            flags.append(argument)
        else:
            wanted = argument
    for app in call.phone.apps.values():
        if ("-3" in flags and is_system(app)) or ("-s" in flags and not is_system(app)) or wanted not in app.package:
            continue
        path = f"{code_path(app)}=" if "-f" in flags else ""
        call.line(f"package:{path}{app.package}{' versionCode:1' if '--show-versioncode' in flags else ''}")
    return 0


async def _about_one(call: Call, verb: str) -> int:
    names = [argument for argument in call.arguments if not argument.startswith("-") and argument != "0"]
    if not names:
        raise JavaFailure("java.lang.IllegalArgumentException", f'Argument expected after "{verb}"')
    app = call.phone.apps.get(names[0])
    if app is None:
        if verb == "path":
            return 1
        raise CommandFailure("Failed" if verb == "clear" else f"Error: Unknown package: {names[0]}")
    if verb == "path":
        call.line(f"package:{code_path(app)}")
    elif verb == "clear":
        await call.phone.force_stop(app.package)
        call.line("Success")
    return 0


def _activities(call: Call, verb: str) -> int:
    brief = "--brief" in call.arguments
    short = "--components" in call.arguments
    intent = read_intent(call, [argument for argument in call.arguments if argument not in {"--brief", "--components"}])
    found = _matching(call, intent)
    if verb == "resolve-activity":
        if not found or not (intent.package or intent.component):
            call.line("No activity found")
            return 0
        call.out(_described(found[0], brief=brief, short=short, indent=""))
        return 0
    if not found:
        call.line("No activities found")
        return 0
    if not short:
        call.line(f"{len(found)} activities found:")
    for at, app in enumerate(found):
        if not short:
            call.line(f"  Activity #{at}:")
        call.out(_described(app, brief=brief, short=short, indent="" if short else "    "))
    return 0


def _matching(call: Call, intent: Intent) -> list[InstalledApp]:
    wanted = intent.package or intent.component.partition("/")[0]
    return [app for app in call.phone.apps.values() if app.launchable and wanted in {"", app.package}]


def _described(app: InstalledApp, *, brief: bool, short: bool, indent: str) -> str:
    if short:
        return component(app) + "\n"
    if brief:
        return f"{indent}{_MATCH}\n{indent}{component(app)}\n"
    return (
        f"{indent}{_MATCH}\n{indent}ActivityInfo:\n"
        f"{indent}  name={whole_activity(app.package, app.activity)}\n{indent}  packageName={app.package}\n"
        f"{indent}  labelRes=0x0 nonLocalizedLabel={app.label} icon=0x0 banner=0x0\n"
    )
