"""One tree of errors. Each says what went wrong and what to do about it.

``kind`` is stable: logs, rows and the text files of both languages (``error.<kind>``) use it. ``advice`` tells the
person who can act what to do next. ``str(error)`` is both, in one line. ``key`` names the error's own text
(``errors.<key>`` in the text files, filled in with ``values``), for people who read it in their language.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar


class PhonedeskError(Exception):
    """The base of every error that is shown to a person or a model."""

    kind: ClassVar[str] = "error"
    default_advice: ClassVar[str] = ""

    def __init__(self, message: str, *, advice: str | None = None, key: str = "", **values: object) -> None:
        self.message = message
        self.key = key
        self.values = values
        self.retried = False  # it was retried as often as allowed; callers do not start again
        self.may_repeat = False  # certainly nothing was done on the phone, and a repetition may succeed
        self.advice = self.default_advice if advice is None else advice
        super().__init__(f"{message} {self.advice}".strip())


class ConfigError(PhonedeskError):
    """A setting is missing, invalid, or names something that is not there."""

    kind = "config"
    default_advice = "Run `phonedesk doctor` to see which setting is meant."


class ConfigMissing(ConfigError):
    kind = "config.missing"


class ConfigInvalid(ConfigError):
    kind = "config.invalid"


class AdbNotFound(ConfigError):
    """No adb program, or no adb server could be reached or started."""

    kind = "config.adb"
    default_advice = "Install adb (Debian: apt-get install adb) or set PHONEDESK_DEVICE__ADB_PATH."


class HdcNotFound(ConfigError):
    """The hdc program of the settings cannot be started."""

    kind = "config.hdc"
    default_advice = (
        "Install hdc (it comes with DevEco Studio and with HarmonyOS's Command Line Tools) and set "
        "PHONEDESK_DEVICE__HDC_PATH to it."
    )


class DeviceError(PhonedeskError):
    """The phone, or the way to it."""

    kind = "device"


class DeviceOffline(DeviceError):
    """The phone is not attached, is offline, or went away in the middle."""

    kind = "device.offline"
    default_advice = "Check the cable or the network; `phonedesk devices` lists the phones."


class DeviceUnauthorized(DeviceError):
    kind = "device.unauthorized"
    default_advice = "Unlock the phone and allow USB debugging for this computer."


class CommandFailed(DeviceError):
    """A command on the phone ended with an error or took too long."""

    kind = "device.command"


class ScreenshotFailed(DeviceError):
    """No picture, or one that must not be acted on (black, stale)."""

    kind = "device.screenshot"
    default_advice = "A protected window gives black pictures; leave it by hand, or look whether the screen is on."


class AppNotFound(DeviceError):
    kind = "device.app_missing"
    default_advice = "Install the app on the phone, then try again."


class TextInputFailed(DeviceError):
    """The phone took the text but did not type it, or has no keyboard for it."""

    kind = "device.text_input"
    default_advice = (
        "Run `phonedesk doctor`, which says how the phone is typed on; allow 'USB debugging (security settings)' where"
        " the maker has it."
    )


class InputDenied(DeviceError):
    """The phone refuses taps or keys (INJECT_EVENTS)."""

    kind = "device.input_denied"
    default_advice = "Turn on 'USB debugging (security settings)' in the developer options."


class SettingsDenied(DeviceError):
    """The phone does not let its settings be changed over adb (WRITE_SECURE_SETTINGS)."""

    kind = "device.settings_denied"
    default_advice = "Turn on 'USB debugging (security settings)' in the developer options."


class TreeUnavailable(DeviceError):
    """The accessibility tree could not be read (screen moving, service failing, too slow)."""

    kind = "device.tree"
    default_advice = "The picture is used instead."


class ScreenOff(DeviceError):
    """The screen went off during a run: a person's way to stop it."""

    kind = "device.screen_off"
    default_advice = "Wake the phone and start again."


class LeaseLost(DeviceError):
    """Another owner has the phone."""

    kind = "device.lease"
    default_advice = "Wait until the other run has ended, or stop it."


class LearningFailed(DeviceError):
    """An app could not be learnt on a phone."""

    kind = "device.learning"
    default_advice = "Open the chat by hand and use --here, or write a kit with phonedesk apps export."


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The names of an endpoint's settings for error messages: variables, or options of a command."""

    base_url: str = "PHONEDESK_MODEL__BASE_URL"
    name: str = "PHONEDESK_MODEL__NAME"
    api_key: str = "PHONEDESK_MODEL__API_KEY"
    timeout_seconds: str = "PHONEDESK_MODEL__TIMEOUT_SECONDS"

    @classmethod
    def of(cls, section: str) -> ModelNames:
        """Return the names for another section of the settings, such as PLANNER."""
        names = {field.name: f"PHONEDESK_{section}__{field.name.upper()}" for field in fields(cls)}
        return cls(**names)


MODEL_NAMES = ModelNames()


class ModelError(PhonedeskError):
    kind = "model"


class ModelUnreachable(ModelError):
    """Network error, or HTTP 5xx after the retries."""

    kind = "model.unreachable"
    default_advice = "Check PHONEDESK_MODEL__BASE_URL and that the model server runs."


class ModelTimeout(ModelError):
    kind = "model.timeout"
    default_advice = "The model server is slow or stuck; look at it, or raise PHONEDESK_MODEL__TIMEOUT_SECONDS."


class ModelAuth(ModelError):
    kind = "model.auth"
    default_advice = "Check PHONEDESK_MODEL__API_KEY."


class ModelQuota(ModelError):
    """HTTP 429 after the retries."""

    kind = "model.quota"
    default_advice = "Top up the account or lower the rate."


class ModelSpent(ModelQuota):
    """The balance is used up: the same fails until somebody tops it up."""

    kind = "model.quota.spent"
    default_advice = "Top up the account."


class ModelLimit(ModelError):
    """A limit of our own settings is reached; ``key`` says which: day_calls, day_tokens, day_cost, minute."""

    kind = "model.limit"
    default_advice = "Raise the limit in PHONEDESK_LIMITS, or wait until it begins anew."


class ModelRefused(ModelError):
    """The provider refused the content. The same is not sent to the same model again."""

    kind = "model.refused"
    default_advice = (
        "Say the task in other words, leave the page, or add a model of another provider to PHONEDESK_MODEL__FALLBACKS."
    )


class ModelFormat(ModelError):
    """The endpoint did not answer in the chat completions form, or with nothing at all."""

    kind = "model.format"
    default_advice = (
        "Check that PHONEDESK_MODEL__BASE_URL is an OpenAI-compatible endpoint and PHONEDESK_MODEL__NAME is right."
    )


class ModelUnknown(ModelError):
    """The server knows no model of this name, or nothing answers at this path of it."""

    kind = "model.unknown"
    default_advice = "Check PHONEDESK_MODEL__NAME, and the path in PHONEDESK_MODEL__BASE_URL."


class ActionError(PhonedeskError):
    kind = "action"


class ActionParseError(ActionError):
    """A reply that holds no complete, valid call. ``message`` is meant for the model: what was wrong, exactly."""

    kind = "action.parse"


class ActionFailed(ActionError):
    """The action ran and failed; the run continues and the model gets the message."""

    kind = "action.failed"


class SecurityError(PhonedeskError):
    kind = "security"


class InputRejected(SecurityError):
    """Input of the wrong form: a task, a package name, a URL."""

    kind = "security.input"


class RateLimited(SecurityError):
    kind = "security.rate"


class KnowledgeError(PhonedeskError):
    kind = "knowledge"


class KnowledgeAuth(KnowledgeError):
    kind = "knowledge.key"
    default_advice = "Check PHONEDESK_KNOWLEDGE__TOKEN."


class KnowledgeQuota(KnowledgeError):
    kind = "knowledge.quota"
    default_advice = "The knowledge service refuses more for now: wait, or raise its plan."


class KnowledgeNotFound(KnowledgeError):
    kind = "knowledge.not_found"
    default_advice = "Check PHONEDESK_KNOWLEDGE__DATASET_ID."


class KnowledgeNotReady(KnowledgeError):
    kind = "knowledge.not_ready"
    default_advice = "The dataset is not indexed yet: finish it in the knowledge service."


class KnowledgeUnreachable(KnowledgeError):
    """Network error, time-out, HTTP 5xx, or an answer that is not the provider's JSON."""

    kind = "knowledge.network"
    default_advice = "Check PHONEDESK_KNOWLEDGE__BASE_URL and that the service runs."
