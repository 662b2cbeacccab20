"""Shows a recorded run to a model once more, and compares its proposals: no phone, no adb."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr
from rich.table import Table

from agent_core.errors import ModelError
from agent_core.model.profile import BY_NAME, profile_of_model
from agent_core.texts import Listed
from bot.app.settings.sections import EndpointSettings
from bot.channels.chat.cards import cut
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import Exit, fail, settings_from
from bot.channels.cli.terminal.console import Console, Text, err, print_json, watched
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor, BadRequest
from bot.tools.replay.dry_run import ActionLikeness, Comparison, ReplayedStep, try_again
from bot.tools.replay.recording import covered
from bot.tools.replay.words import action_of

if TYPE_CHECKING:
    from agent_core.actions.types import Action
    from bot.app.settings.layers import Settings
    from bot.channels.cli.commands.replay import ReplayOptions
    from bot.desk.desk import Desk
    from bot.desk.history_views import RecordingView

STYLES = {
    ActionLikeness.SAME: "green",
    ActionLikeness.NEAR: "cyan",
    ActionLikeness.DIFFERENT: "yellow",
    ActionLikeness.INVALID: "red",
}
HEADS = ("step", "recorded", "new", "likeness", "gate", "seconds", "tokens")
LONGEST = 60  # characters of an action in the table
ITS_OWN = ("extra_body", "max_tokens", "top_p", "frequency_penalty")  # only the configured model is sent these


def ask_again(wanted: ReplayOptions) -> None:
    """Print the comparison. Exit code 1 if the model cannot be reached, or agrees less than ``--least`` requires."""
    settings = settings_from()

    async def tried(desk: Desk, me: Actor) -> tuple[RecordingView, Comparison, ModelError | None]:
        view = await desk.history.recording(me, wanted.run)
        if not view.recorded:
            said = f"It is not recorded what the model was asked in the run {wanted.run}."
            raise BadRequest(said, key="no_recording", name=wanted.run)
        view = view if wanted.raw else covered(view)
        compared, error = await _compared(desk, view, settings, wanted)
        return view, compared, error

    (view, compared, error), lang = with_desk(tried)
    words = texts(lang)
    if wanted.as_json:
        print_json(_plain(view, compared, error))
    else:
        _show(view, compared, words)
    if error is not None:
        broken = view.recorded[len(compared.tried)].record.index
        err.print(words.get("compare.broke_off", step=broken), style="red")
        fail(error)
    if wanted.least is not None and compared.agreement * 100 < wanted.least:
        said = words.get("compare.too_little", agreement=compared.agreement, least=wanted.least / 100)
        err.print(said, style="red")
        raise typer.Exit(Exit.FAILED)


async def _compared(
    desk: Desk, view: RecordingView, settings: Settings, wanted: ReplayOptions
) -> tuple[Comparison, ModelError | None]:
    """Compare as far as the model answered; return the error that ended it, too."""
    from bot.app.limits import StoredMeter
    from bot.app.models import chat_model, endpoint_profile

    endpoint = _endpoint(settings, wanted)
    profile = endpoint_profile(endpoint)
    # It costs as much as any call, and counts towards the day's limit.
    model = chat_model(endpoint, settings, StoredMeter(desk.context.db, settings))
    compared = Comparison(model.name, profile.name)
    try:
        # Progress is shown on standard error if that is a terminal.
        with watched().status("") as status:
            async for one in try_again(view, model, profile, elements=settings.observe.elements):
                compared.tried.append(one)
                status.update(f"{len(compared.tried)}/{len(view.recorded)}")
    except ModelError as error:
        return compared, error
    finally:
        await model.close()
    return compared, None


def _endpoint(settings: Settings, wanted: ReplayOptions) -> EndpointSettings:
    """Return the settings' model with the command line's values on top. Raises ConfigInvalid for an unknown profile."""
    own = settings.model
    update: dict[str, Any] = {"api_key": _key(settings, wanted)}
    if wanted.model_name or wanted.model_url or wanted.profile:
        # The settings of the configured model do not apply to another one.
        update |= {"profile": wanted.profile or BY_NAME, "dialect": "", "vision": True}
        update |= {"name": wanted.model_name or own.name, "base_url": wanted.model_url or own.base_url}
        if (update["name"], update["base_url"]) != (own.name, own.base_url):
            update |= {
                name: EndpointSettings.model_fields[name].get_default(call_default_factory=True) for name in ITS_OWN
            }
        profile_of_model(update["name"], update["profile"])
    return own.model_copy(update=update)


def _key(settings: Settings, wanted: ReplayOptions) -> SecretStr:
    """Return the key. The settings' key is for their endpoint only: no other one is sent it."""
    if wanted.key_env:
        key = os.environ.get(wanted.key_env, "")
        if not key:
            said = f"There is no key in the variable {wanted.key_env}."
            raise BadRequest(said, key="replay_no_key", name=wanted.key_env)
        return SecretStr(key)
    if wanted.model_url and _origin(wanted.model_url) != _origin(settings.model.base_url):
        return SecretStr("EMPTY")
    return settings.model.api_key


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


# Output ---------------------------------------------------------------------------------------------------------------


def _show(view: RecordingView, compared: Comparison, words: Texts) -> None:
    console = Console()
    table = Table(box=None, padding=(0, 1))
    for name in HEADS:
        right = name in {"step", "seconds", "tokens"}
        # Chinese has no spaces to break at, and must not be cut.
        table.add_column(words.get(f"compare.head_{name}"), justify="right" if right else "left", overflow="fold")
    for one in compared.tried:
        table.add_row(
            str(one.step),
            Text(_short(one.recorded, words)),
            Text(_short(one.new, words) or one.error[:LONGEST], style="" if one.new else "red"),
            Text(words.get(f"compare.{one.likeness}"), style=STYLES[one.likeness]),
            Text(_ruled(one, words), style="yellow"),
            f"{one.seconds:.2f}",
            f"{one.tokens_in}+{one.tokens_out}",
        )
    console.print(table)
    if left := len(view.steps) - len(view.recorded):
        console.print(Text(words.get("compare.left_out", count=left, steps=len(view.steps)), style="dim"))
    asked = view.recorded[: len(compared.tried)]
    if blind := sum(1 for step in asked if step.asked and step.asked.sees and step.picture is None):
        console.print(Text(words.get("compare.no_pictures", count=blind), style="yellow"))
    console.print(Text(words.get("compare.total", **_total(compared)), style="bold"))


def _short(action: Action | None, words: Texts) -> str:
    return cut(action_of(action.model_dump() if action else None, words), LONGEST)


def _ruled(one: ReplayedStep, words: Texts) -> str:
    """Return the gate's result for the action, if that differs."""
    if one.new is None or one.allowed == one.new:
        return ""
    rules = Listed(one.rules)
    if one.allowed is None:
        return words.get("compare.blocked", rules=rules)
    return words.get("compare.changed", rules=rules, action=_short(one.allowed, words))


def _total(compared: Comparison) -> dict[str, Any]:
    tried = compared.tried
    count = len(tried)
    return {
        "model": compared.model,
        "profile": compared.profile,
        "count": count,
        **{kind.value: compared.count(kind) for kind in ActionLikeness},
        "agreement": compared.agreement,
        "seconds": sum(one.seconds for one in tried) / count if count else 0.0,
        "before": sum(one.before for one in tried) / count if count else 0.0,
        "tokens_in": sum(one.tokens_in for one in tried),
        "tokens_out": sum(one.tokens_out for one in tried),
    }


def _plain(view: RecordingView, compared: Comparison, error: ModelError | None) -> dict[str, Any]:
    return {
        "run": view.run.id,
        "number": view.number,
        "task": view.run.task,
        "steps_of_run": len(view.steps),
        "steps_recorded": len(view.recorded),
        "error": str(error) if error is not None else None,
        **_total(compared),
        "steps": [
            asdict(one)
            | {name: _data(getattr(one, name)) for name in ("recorded", "done", "new", "allowed")}
            | {"likeness": one.likeness.value}
            for one in compared.tried
        ],
    }


def _data(action: Action | None) -> dict[str, Any] | None:
    return action.model_dump(mode="json") if action is not None else None
