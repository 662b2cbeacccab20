"""Changing the TOML file: one setting at a time, everything else in it as it was, comments too."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from agent_core.errors import ConfigInvalid
from bot.app.settings.files import reading
from bot.app.settings.layers import Settings, unread
from bot.app.settings.loading import SettingProblem, SettingsWrong, problems_of, try_settings
from bot.app.settings.masking import secrets_in
from bot.app.settings.names import Name, names, value_at
from bot.app.settings.origin import OnlyGiven, Places, SettingPlace
from bot.app.settings.values import password_of

PRIVATE = 0o600
WRITABLE = 0o222
UNCHANGED = "Nothing was changed."

# Returns the problems that stop a server from starting although each setting is right; the builder of its parts finds
# them.
Incomplete = Callable[[Settings], list[SettingProblem]]


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a change.

    over: the places that name the same setting and win over the file.
    changed: False if the file already had this value.
    """

    over: tuple[SettingPlace, ...]
    changed: bool


def set_value(name: Name, inside: str, text: str, file: Path, incomplete: Incomplete) -> Written:
    """Write the value in ``text`` (as in the environment) into ``file``, which is made if it does not exist.

    inside: the key in the setting's table, "" for the setting itself.

    Raises ConfigInvalid if the value is wrong, or the settings with it would be; the file is then unchanged.
    """
    keys = _keys(name, inside)
    try:
        return _write(name, keys, value_of(name, keys, text), file, incomplete)
    except SettingsWrong as error:
        if len(keys) < 2 or not any(problem.kind == "missing" for problem in error.problems):
            raise
        entry = ".".join((*name.path, keys[0]))
        said = f"It is not there yet: write it whole, as in {entry} '{{\"{keys[1]}\": {text}, …}}'."
        told = SettingProblem(
            (*name.path, *keys), "not_whole", said, values={"name": entry, "field": keys[1], "value": text}
        )
        raise SettingsWrong(said, [told], advice=UNCHANGED, refused=True) from None


def unset(name: Name, inside: str, file: Path, incomplete: Incomplete) -> Written:
    """Remove the setting from ``file``. Raises ConfigInvalid if the settings without it would be wrong."""
    return _write(name, _keys(name, inside), None, file, incomplete)


def _entry(name: Name) -> type[BaseModel] | None:
    """Return the type of an entry of the setting's table, if an entry is a table, too."""
    found = get_args(name.field.annotation)[-1:] if name.is_table else ()
    return found[0] if found and isinstance(found[0], type) and issubclass(found[0], BaseModel) else None


def _keys(name: Name, inside: str) -> tuple[str, ...]:
    """Return the keys below the setting: of its table, and of the table inside it. Names of models hold dots."""
    entry, (before, _, last) = _entry(name), inside.rpartition(".")
    if entry is not None and before and last in entry.model_fields:
        return before, last
    return (inside,) if inside else ()


def value_of(name: Name, keys: tuple[str, ...], text: str) -> Any:
    """Return ``text`` checked and as TOML writes it, None if it means no value. Raises SettingsWrong.

    ``keys``: those inside the setting, if its value is a table.
    """
    entry = _entry(name)
    if keys and entry is None:
        return text
    kind: TypeAdapter[Any] = _adapter(name.field)
    if entry is not None and keys:
        kind = TypeAdapter(entry) if len(keys) == 1 else _adapter(entry.model_fields[keys[1]])
    try:
        checked = kind.validate_python(_parsed(name, text))
    except ValidationError as error:
        problems = [replace(problem, path=(*name.path, *keys, *problem.path)) for problem in problems_of(error)]
        why = "; ".join(problem.message for problem in problems)
        raise SettingsWrong(f"{name.key} cannot be that: {why}.", problems, advice=UNCHANGED, refused=True) from None
    return _plain(checked)


def _adapter(field: FieldInfo) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)


def _parsed(name: Name, text: str) -> Any:
    """Return the text as a value.

    Tables and lists of tables are JSON, as in the environment; lists split words themselves.
    """
    if text.lstrip()[:1] in {"{", "["} and not isinstance(name.default, str | SecretStr):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return None if text == "" and name.default is None else text


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return {key: _plain(item) for key, item in value if item is not None and key in value.model_fields_set}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _write(name: Name, keys: tuple[str, ...], value: Any, file: Path, incomplete: Incomplete) -> Written:
    file = file.expanduser().resolve()  # a link stays a link
    before = _text(file)
    after = _edited(before, (*name.path, *keys), value, file)
    new = _new_problems(name, before, after, file, incomplete)
    if new:
        why = "; ".join(f"{'.'.join(problem.path) or file.name}: {problem.message}" for problem in new)
        raise SettingsWrong(f"With that the settings are not usable. {why}.", new, advice=UNCHANGED, refused=True)
    if after != before:
        _replace(file, after)
    over = [place for place in Places().of(name.path) if place.layer != "file"]
    return Written(tuple(over), after != before)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode() if file.exists() else ""
    except (OSError, ValueError) as error:
        raise unread(file, error) from None


def _edited(text: str, path: tuple[str, ...], value: Any, file: Path) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        around: Any = document
        for part in path[:-1]:
            if part not in around:
                if value is None:
                    return text
                around[part] = tomlkit.table(is_super_table=part != path[-2])
            around = around[part]
        if value is not None:
            around[path[-1]] = value
        elif path[-1] in around:
            del around[path[-1]]
            _drop_empty(document, path[:-1])
        text = tomlkit.dumps(document)
        return text if text.endswith("\n") or not text else text + "\n"
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise ConfigInvalid(
            f"{file} cannot be changed: {error}.",
            advice="Mend the file, or edit it by hand.",
            key="file_unchanged",
            file=file,
            why=error,
        ) from None


def _drop_empty(document: Any, path: tuple[str, ...]) -> None:
    """Remove the tables that are empty now and hold no comment either."""
    for length in range(len(path), 0, -1):
        around: Any = document
        for part in path[: length - 1]:
            around = around[part]
        if around[path[length - 1]].as_string().strip():
            return
        del around[path[length - 1]]


def _new_problems(name: Name, before: str, after: str, file: Path, incomplete: Incomplete) -> list[SettingProblem]:
    """Return the problems of ``after`` that ``before`` did not have."""
    old, old_parts = _problems(name, before, file, incomplete)
    new, new_parts = _problems(name, after, file, incomplete)
    if old_parts is None:  # unknown before: problems with another subject existed already
        old_parts = [problem for problem in new_parts or [] if problem.path[:1] != name.path[:1]]
    return [
        *(problem for problem in new if problem not in old),
        # A part with fewer problems than before is being repaired step by step.
        *(one for one in new_parts or [] if (one.path, one.kind) not in {(was.path, was.kind) for was in old_parts}),
    ]


def _problems(
    name: Name, text: str, file: Path, incomplete: Incomplete
) -> tuple[list[SettingProblem], list[SettingProblem] | None]:
    """Return the problems of the settings if ``file`` holds ``text``, including those of ``name`` that another layer
    hides.

    The second list has the problems that would stop a server from starting; None if they are unknown.
    """
    problems = []
    try:
        OnlyGiven(**tomllib.loads(text))
    except ValidationError as error:
        problems = [problem for problem in problems_of(error) if problem.path[: len(name.path)] == name.path]
    except ValueError as error:
        problems = [SettingProblem((), "file", str(error))]
    with tempfile.TemporaryDirectory(prefix="phonedesk-") as folder:
        tried = Path(folder) / file.name
        tried.touch(PRIVATE)
        tried.write_text(text, encoding="utf-8")
        with reading(tried):
            settings, wrong = try_settings()
            # A problem that the file has alone usually comes up with the other layers, too.
            problems += [problem for problem in wrong if problem not in problems]
            return problems, None if settings is None else incomplete(settings)


def _replace(file: Path, text: str) -> None:
    """Replace the file in one step, keeping its owner and group.

    A file with a secret becomes readable only by its user, and by its group if others had no access before.
    """
    if file.exists() and not (file.stat().st_mode & WRITABLE and os.access(file, os.W_OK)):
        # A user who may write into its folder could replace it; making it read-only shows that somebody did not want
        # that.
        raise ConfigInvalid(f"{file} is read-only.", advice=UNCHANGED, key="file_read_only", name=file)
    try:
        was = file.stat() if file.exists() else None
        mode = 0o644 if was is None else was.st_mode & 0o777
        if holds_secret(text):
            mode = PRIVATE if mode & 0o007 else mode & 0o660
        handle, made = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            now = Path(made).stat()
            if was is not None and (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
                os.chown(made, was.st_uid, was.st_gid)  # changed by root, the service must still be able to read it
            Path(made).chmod(mode)
            Path(made).replace(file)
        except BaseException:
            Path(made).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigInvalid(
            f"{file} cannot be written: {error.strerror}.", advice=UNCHANGED, key="file_unwritten", file=file, why=error
        ) from None


def holds_secret(text: str) -> bool:
    """Tell whether the text of a TOML file holds a secret."""
    data = tomllib.loads(text)
    return any(_secret_in(data, name) for name in names())


def _secret_in(data: Any, name: Name) -> bool:
    value = value_at(data, name.path)
    if name.is_secret:
        return bool(value)
    if next(secrets_in(value), ""):
        return True
    try:
        return isinstance(value, str) and "://" in value and password_of(value) is not None
    except ValueError:
        return False
