"""The questions of ``phonedesk init``, and the settings that follow from the answers, which go into ``.env``."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from dotenv import set_key
from tzlocal import get_localzone_name

from agent_core.errors import ConfigInvalid
from agent_core.texts import Lang, kept_language
from bot.app.settings.files import ENV_FILE
from bot.app.settings.loading import SettingsWrong
from bot.app.settings.names import find
from bot.app.settings.origin import Places, SettingPlace, in_force
from bot.app.settings.writing import value_of
from bot.app.setup.presets import REPLY_TOKENS_IN, REPLY_TOKENS_OUT, ModelPreset, knowledge_presets, model_presets
from bot.app.setup.texts import SetupTexts
from bot.channels.cli.commands.wrong import reason
from bot.channels.cli.terminal.input import Check, TerminalForm
from bot.channels.cli.terminal.language import texts

OLD_ENV_FILE = f"{ENV_FILE}.old"
_PRIVATE = 0o600
LANGUAGES: tuple[Lang, ...] = get_args(Lang)
# https://core.telegram.org/bots/api#authorizing-your-bot: the bot's id, a colon, its secret.
_TOKEN = re.compile(r"\d{5,20}:[A-Za-z0-9_-]{30,64}")
_COVERED = "***"
_NAMES_OF_LANGUAGES = {"zh": "中文", "en": "English"}

_KEY = "PHONEDESK_MODEL__API_KEY"
_ZONE = "PHONEDESK_TIMEZONE"
_SERIAL = "PHONEDESK_DEVICE__SERIAL"
_VIRTUAL_PHONE = "127.0.0.1:16001"  # as the docs start it
_DEMO = "demo"  # the preset of the demo model
_NONE = "none"  # typed in place of a secret: the present one goes
# An address without its port, or one of the web.
_NO_PHONE = re.compile(r"[0-9]+(?:\.[0-9]+){3}|[A-Za-z0-9.-]+:|.*[\s/].*")
_DIFY = "https://api.dify.ai"  # Dify's own cloud


@dataclass
class Interview:
    """One conversation.

    values: the chosen values, by environment name; "" takes the default again.
    kept: the values set so far, from any source.
    servers: for each secret that was asked for, the setting with the address of its server; "" if it has none.
    """

    form: TerminalForm
    lang: Lang
    values: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    kept: Mapping[str, str] = field(default_factory=in_force)
    servers: dict[str, str] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        self._language()
        self._zone()
        self._model()
        self._phone()
        self._telegram()
        self._knowledge()
        return self.values

    @property
    def words(self) -> SetupTexts:
        return SetupTexts(self.lang)

    def summary(self) -> list[str]:
        """Return the lines of ``.env``, secrets covered."""
        return [
            f"{name}={_COVERED if value and name in self.secrets else value}" for name, value in self.values.items()
        ]

    @property
    def phone_port(self) -> str:
        """The port of the phone, if it has an address, else that of a virtual phone."""
        return self.values.get(_SERIAL, "").rpartition(":")[2] or _VIRTUAL_PHONE.rpartition(":")[2]

    def next_steps(self, *, failed: bool) -> list[str]:
        """Return the next steps as keys of texts. ``failed``: a check has failed."""
        own = self.values["PHONEDESK_KNOWLEDGE__PROVIDER"] == "embedded"
        steps = ["mend"] if failed else []
        if failed and self._has_demo_model():
            steps.insert(0, "virtual")
        if own and self.values["PHONEDESK_KNOWLEDGE__SAMPLE"] == "false":
            steps.append("import")
        if not self._chosen("PHONEDESK_MODEL__BASE_URL"):
            return [*steps, "demo"]
        return [*steps, *(["serve"] if self._chosen("PHONEDESK_TELEGRAM__TOKEN") else ["run", "console"])]

    def over(self) -> dict[str, SettingPlace]:
        """Return the value that counts in place of a chosen one, by the setting's name, once all are written."""
        now, places = in_force(), Places()
        differ = [name for name, value in self.values.items() if now.get(name, "") != value]
        return {name: places.of(find(name)[0].path)[0] for name in differ if now.get(name)}

    def may_ask_servers(self, over: Collection[str]) -> bool:
        """Tell whether every secret that counts was chosen for the server that counts."""
        return not any(name in over for pair in self.servers.items() if pair[1] for name in pair)

    # -- the questions

    def _language(self) -> None:
        usual = LANGUAGES.index(self.lang)
        options = [_NAMES_OF_LANGUAGES[lang] for lang in LANGUAGES]
        self.lang = LANGUAGES[self._choose("language.question", options, usual)]
        self.values["PHONEDESK_LANG"] = self.lang

    def _zone(self) -> None:
        usual = self._present(_ZONE) or get_localzone_name()
        self._ask(_ZONE, "zone.question", usual)
        self.values[_ZONE] = str(value_of(find(_ZONE)[0], (), self.values[_ZONE]))  # the zone of the city

    def _model(self) -> None:
        presets = model_presets()
        address, name = self._present("PHONEDESK_MODEL__BASE_URL"), self._present("PHONEDESK_MODEL__NAME")
        known = [index for index, one in enumerate(presets) if (one.base_url, one.name) == (address, name)]
        usual = known[0] if known else len(presets) if address else 0
        options = [self._offer(one) for one in presets] + [self.words.get("model.other"), self.words.get("model.later")]
        self.form.say("\n" + self.words.get("model.costs", tokens_in=REPLY_TOKENS_IN, tokens_out=REPLY_TOKENS_OUT))
        chosen = self._choose("model.question", options, usual)
        if chosen == len(presets) + 1:
            return
        if chosen == len(presets):
            own = not known  # the present value is of no preset
            self._ask("PHONEDESK_MODEL__BASE_URL", "model.address", address if own else "", missing="model.no_address")
            self._ask("PHONEDESK_MODEL__NAME", "model.name", name if own else "", missing="model.no_name")
            self._secret(_KEY, "model.key_or_none", of="PHONEDESK_MODEL__BASE_URL", none="output.not_needed")
            return
        preset = presets[chosen]
        self.values |= {"PHONEDESK_MODEL__BASE_URL": preset.base_url, "PHONEDESK_MODEL__NAME": preset.name}
        if preset.profile or self._present("PHONEDESK_MODEL__PROFILE"):
            self.values["PHONEDESK_MODEL__PROFILE"] = preset.profile or "auto"
        if preset.tokens_in is not None and preset.tokens_out is not None:
            self.values |= {
                "PHONEDESK_PRICE__TOKENS_IN": f"{preset.tokens_in:g}",
                "PHONEDESK_PRICE__TOKENS_OUT": f"{preset.tokens_out:g}",
                "PHONEDESK_PRICE__CURRENCY": preset.currency,
            }
        if not preset.local:
            self._key(preset)
        elif self._present(_KEY) and not self._keeps(_KEY, "PHONEDESK_MODEL__BASE_URL"):
            self.values[_KEY] = ""  # a server here does not get the key of another
            self.servers[_KEY] = "PHONEDESK_MODEL__BASE_URL"

    def _key(self, preset: ModelPreset) -> None:
        """Ask for the key of a hosted model.

        Nothing works there without one, so Enter is questioned once; a second Enter skips it.
        """
        name = _KEY
        warned = self._keeps(name, "PHONEDESK_MODEL__BASE_URL")

        def problem(typed: str) -> str:
            nonlocal warned
            if typed or warned:
                return self._problem(name, typed)
            warned = True
            return self.words.get("model.no_key", name=name)

        self._secret(name, "model.key", check=problem, of="PHONEDESK_MODEL__BASE_URL", at=preset.key_at)

    def _offer(self, preset: ModelPreset) -> str:
        name = self.words.get(f"model.{preset.key}")
        if preset.local:
            return self.words.get("model.offer_local", title=name, address=preset.base_url)
        if preset.cost_of_reply is None:
            return self.words.get("model.offer", title=name, model=preset.name)
        cost = f"{preset.cost_of_reply:.4f} {preset.currency}"
        return self.words.get("model.offer_priced", title=name, model=preset.name, cost=cost, at=preset.priced_at)

    def _phone(self) -> None:
        """Ask for the phone. With the demo model, Enter takes the address of the virtual phone, which that model
        operates.
        """
        virtual = self._has_demo_model()
        usual = self._present(_SERIAL) or (_VIRTUAL_PHONE if virtual else "")

        def problem(typed: str) -> str:
            _, colon, port = typed.rpartition(":")
            no_port = bool(colon) and port.isdecimal() and not 0 < int(port) < 65536
            wrong = no_port or (virtual and not colon) or _NO_PHONE.fullmatch(typed)
            return self.words.get("phone.no_address") if wrong else self._problem(_SERIAL, typed)

        question = self.words.get("phone.virtual" if virtual else "phone.question")
        if typed := self.form.text(question, usual=usual, check=problem):
            self.values[_SERIAL] = typed

    def _has_demo_model(self) -> bool:
        demo = next(preset for preset in model_presets() if preset.key == _DEMO)
        return (self._chosen("PHONEDESK_MODEL__BASE_URL"), self._chosen("PHONEDESK_MODEL__NAME")) == (
            demo.base_url,
            demo.name,
        )

    def _telegram(self) -> None:
        self._secret("PHONEDESK_TELEGRAM__TOKEN", "telegram.token", check=self._token_problem, none="telegram.no_bot")
        if not self._chosen("PHONEDESK_TELEGRAM__TOKEN"):
            return
        self._ask("PHONEDESK_TELEGRAM__PROXY", "telegram.proxy", self._present("PHONEDESK_TELEGRAM__PROXY"))
        if not self.values["PHONEDESK_TELEGRAM__PROXY"]:
            del self.values["PHONEDESK_TELEGRAM__PROXY"]

    def _token_problem(self, typed: str) -> str:
        return "" if not typed or _TOKEN.fullmatch(typed) else self.words.get("telegram.no_token")

    def _knowledge(self) -> None:
        presets = {preset.key: preset for preset in knowledge_presets()}
        kinds = ("embedded", "sample", "dify", "ragflow", *presets)
        options = [self.words.get(f"knowledge.{kind}") for kind in kinds]
        present = self._present("PHONEDESK_KNOWLEDGE__PROVIDER")
        sample = self._present("PHONEDESK_KNOWLEDGE__SAMPLE").lower() in {"true", "1", "yes", "on"}
        address = self._present("PHONEDESK_KNOWLEDGE__BASE_URL")
        if present == "http":
            present = next((key for key, preset in presets.items() if address.endswith(preset.path)), present)
        usual = kinds.index(present) if present in kinds[2:] else int(sample)
        kind = kinds[self._choose("knowledge.question", options, usual)]
        remote, preset = kind in kinds[2:], presets.get(kind)
        provider = "http" if preset else kind if remote else "embedded"
        self.values["PHONEDESK_KNOWLEDGE__PROVIDER"] = provider
        self.values["PHONEDESK_KNOWLEDGE__SAMPLE"] = "true" if kind == "sample" else "false"
        if remote:
            path = preset.path if preset else ""
            offered = preset.server if preset else address or (_DIFY if kind == "dify" else "")
            server = address.removesuffix(path) if kind == present else offered
            self._ask("PHONEDESK_KNOWLEDGE__BASE_URL", "knowledge.address", server, missing="output.needed")
            setting = "PHONEDESK_KNOWLEDGE__DATASET_ID"
            self._ask(setting, "knowledge.dataset", self._present(setting), missing="output.needed")
            if preset:
                typed = self.values["PHONEDESK_KNOWLEDGE__BASE_URL"].rstrip("/")
                self.values["PHONEDESK_KNOWLEDGE__BASE_URL"] = typed.removesuffix(path) + path
                template = preset.settings().items()
                self.values |= {name: value for name, value in template if value or self._present(name)}
            self._secret(
                "PHONEDESK_KNOWLEDGE__TOKEN",
                "knowledge.token",
                of="PHONEDESK_KNOWLEDGE__BASE_URL",
                none="output.not_needed",
            )

    # -- how it is asked

    def _present(self, name: str) -> str:
        return self.kept.get(name, "")

    def _chosen(self, name: str) -> str:
        return self.values[name] if name in self.values else self._present(name)

    def _choose(self, question: str, options: list[str], usual: int) -> int:
        wrong = self.words.get("output.no_option", most=len(options))
        return self.form.choose(self.words.get(question), options, usual=usual, wrong=wrong)

    def _ask(self, name: str, question: str, usual: str, *, missing: str = "") -> None:
        """Ask for a setting. ``missing``: the text that is shown if nothing is typed; "" if that is allowed."""

        def problem(typed: str) -> str:
            if missing and not typed:
                return self.words.get(missing)
            return self._problem(name, typed)

        self.values[name] = self.form.text(self.words.get(question), usual=usual, check=problem)

    def _secret(
        self, name: str, question: str, check: Check | None = None, *, of: str = "", none: str = "", **values: str
    ) -> None:
        """Ask for a secret. Enter keeps the present one, and "none" removes it.

        of: the setting with the address of the server that it is for. Another server does not get it by Enter.
        none: the text that says what Enter means if there is no present one.
        """
        self.servers[name] = of
        there = self._keeps(name, of)
        by_enter = "output.kept" if there else none
        how = self.words.get("output.between").join(self.words.get(key) for key in ("output.hidden", by_enter) if key)
        said = self.words.get(question, how=how, **values)

        def problem(typed: str) -> str:
            if there and typed == _NONE:
                return ""
            return check(typed) if check else self._problem(name, typed)

        typed = self.form.secret(said, check=problem)
        if typed or (self._present(name) and not there):
            self.values[name] = "" if there and typed == _NONE else typed
            self.secrets.add(name)

    def _keeps(self, name: str, of: str) -> bool:
        """Tell whether an existing secret stays: the server at the address in the setting ``of`` is the same."""
        if not of or not self._present(name):
            return bool(self._present(name))
        before = self._present(of) or str(find(of)[0].default)
        return urlsplit(self._chosen(of))[:2] == urlsplit(before)[:2]

    def _problem(self, name: str, typed: str) -> str:
        """Return the problem with a setting's value; "" if it is right.

        The default, which is written as nothing, is always right.
        """
        if not typed:
            return ""
        if "\n" in typed or not typed.isprintable():
            return self.words.get("output.unprintable")
        try:
            value_of(find(name)[0], (), typed)
        except SettingsWrong as error:
            return " ".join(reason(texts(self.lang), problem) for problem in error.problems)
        return ""


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
                _keep_old(file.parent / OLD_ENV_FILE, before)
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


def _keep_old(old: Path, text: str) -> None:
    old.unlink(missing_ok=True)
    handle = os.open(old, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
        out.write(text)
