"""Changing ``.env``: the values that were chosen, everything else in it as it was."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dotenv import set_key

from agent_core.errors import ConfigInvalid
from agent_core.texts import kept_language
from bot.app.settings.files import ENV_FILE
from bot.app.setup.texts import SetupTexts

OLD = f"{ENV_FILE}.old"
_PRIVATE = 0o600


def write_env(values: Mapping[str, str], folder: Path) -> bool:
    """Write the values into ``.env`` of a folder, in one step, readable only by its owner.

    An existing file is kept as ``.env.old``; returns whether there was one. Raises ConfigInvalid if the file cannot be
    read or written; then it is unchanged.
    """
    lang = kept_language(values.get("PHONEDESK_LANG"), "en")
    header = f"# {SetupTexts(lang).get('output.header')}\n"
    file = (folder / ENV_FILE).resolve()  # a link stays a link
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        handle, name = tempfile.mkstemp(prefix=f"{ENV_FILE}-", dir=file.parent)  # 0600
        made = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
                out.write(before or header)
            for key, value in values.items():
                set_key(made, key, value, quote_mode="auto", encoding="utf-8")
            made.chmod(_PRIVATE)
            if before:
                _keep(file.parent / OLD, before)
            made.replace(file)
        finally:
            made.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise ConfigInvalid(
            f"{file} cannot be written: {said}.",
            advice="Nothing was changed.",
            key="env_not_written",
            file=file,
            error=said,
        ) from None
    return bool(before)


def _keep(old: Path, text: str) -> None:
    old.unlink(missing_ok=True)
    handle = os.open(old, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
        out.write(text)
