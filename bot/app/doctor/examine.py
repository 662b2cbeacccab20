"""Checks everything that a run needs, and reports problems and what to do about them.

It changes nothing, unless it is asked to repair what it can.

async for result in examine(settings, lang="en"):
    print(result.check, result.status, result.seen, result.advice)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack

from agent_core.errors import ConfigError, PhonedeskError
from agent_core.proxies import LOCAL, LOOPBACK, Route
from agent_core.texts import sentences
from bot.app.doctor import ios_and_harmonyos, machine, mending, phone, services, webhooks
from bot.app.doctor.exam import Check, Exam
from bot.app.doctor.report import CheckResult, CheckStatus, DoctorVerdict
from bot.app.doctor.texts import DoctorTexts
from bot.app.settings.layers import Settings
from bot.app.settings.loading import SettingsWrong
from bot.channels.chat.texts import Lang
from bot.channels.chat.texts import texts as chat_texts
from bot.channels.cli.commands.wrong import summary

__all__ = ["CHECKS", "Check", "CheckResult", "CheckStatus", "examine"]

CHECKS: tuple[Check, ...] = (
    Check("settings", machine.settings, mend=mending.settings),
    Check("database", machine.database, ("settings",)),
    Check("hdc", ios_and_harmonyos.hdc, ("settings",), seconds=20),
    Check("wda", ios_and_harmonyos.wda, ("settings",), seconds=20),
    Check("adb", phone.adb, ("settings",), seconds=10),
    Check("phone", phone.phone, ("adb",), seconds=10, mend=mending.phone),
    Check("authorised", phone.authorised, ("phone",)),
    Check("screen", phone.screen, ("authorised",), mend=mending.screen),
    Check("screenshot", phone.screenshot, ("authorised", "screen"), seconds=10),
    Check("keyboard", phone.keyboard, ("authorised",), mend=mending.keyboard),
    Check("input", phone.touch, ("authorised",)),
    Check("setup", phone.setup, ("authorised",), mend=mending.setup),
    Check("app", phone.app, ("authorised",)),
    Check("learnt", phone.learnt, ("database", "authorised")),
    Check("tree", phone.tree, ("authorised", "screen"), seconds=6),
    Check("ocr", machine.ocr, ("settings",), seconds=20),
    Check("model", services.model, ("settings",), seconds=2 * services.MODEL_SECONDS + 1),
    Check("model_name", services.model_name, ("model",), seconds=services.MODEL_SECONDS + 1),
    Check("model_vision", services.model_vision, ("model", "model_name"), seconds=services.MODEL_SECONDS + 1),
    Check("fallbacks", services.fallbacks, ("settings",), seconds=3 * services.MODEL_SECONDS + 10),
    Check("planner", services.planner, ("settings",), seconds=3 * services.MODEL_SECONDS + 10),
    Check("prices", services.prices, ("settings",)),
    Check("limits", services.limits, ("database",)),
    Check("knowledge", services.knowledge, ("settings",), seconds=10),
    Check("token", services.telegram_token, ("settings",), seconds=10),
    Check("webhook", services.telegram_webhook, ("token",), seconds=10),
    Check("notify", services.notify, ("settings",)),
    Check("webhooks", webhooks.outgoing, ("database",), seconds=10),
    Check("incoming", webhooks.incoming, ("database",)),
    Check("timezone", machine.timezone, ("settings",)),
)
"""All checks in their order."""

PASSED = frozenset({CheckStatus.OK, CheckStatus.NOTE, CheckStatus.WARNING})


async def examine(
    settings: Settings | ConfigError,
    *,
    serial: str = "",
    lang: Lang,
    mend: bool = False,
    checks: Iterable[Check] = CHECKS,
) -> AsyncGenerator[CheckResult, None]:
    """Yield each check's result as soon as it is there.

    settings: the error if they could not be loaded.
    mend: repair the problems that can be repaired, and check those again.
    """
    words = DoctorTexts(lang)
    causes: dict[str, CheckResult] = {}  # for every check that did not pass, the first check that caused it
    async with AsyncExitStack() as stack:
        exam = Exam(settings, serial, stack, lang)
        for check in checks:
            cause = next((causes[need] for need in check.needs if need in causes), None)
            result = _not_made(check, cause, words) if cause else await _made(check, exam, words, mend=mend)
            if result.status not in PASSED:
                causes[check.key] = cause or result
            yield result


def _not_made(check: Check, cause: CheckResult, words: DoctorTexts) -> CheckResult:
    seen = words.get(f"output.after_{cause.status.value}", {"title": cause.title})
    return CheckResult(check.key, words.get(f"{check.key}.title"), CheckStatus.SKIPPED, seen, after=cause.check)


async def _made(check: Check, exam: Exam, words: DoctorTexts, *, mend: bool) -> CheckResult:
    status, seen, advice, verdict = await _tried(check, exam, words)
    mending = False
    if (
        mend
        and check.mend is not None
        and verdict is not None
        and verdict.status in {CheckStatus.NOTE, CheckStatus.WARNING, CheckStatus.FAILED}
    ):
        try:
            mending = await check.mend(exam, verdict)
        except (PhonedeskError, OSError, TimeoutError) as error:
            why = _error(error, words) if isinstance(error, PhonedeskError) else str(error) or type(error).__name__
            seen = sentences([seen, words.get("output.not_mended", {"why": why})], words.lang)
            mending = True
        else:
            if mending:
                status, seen, advice, _ = await _tried(check, exam, words)
                seen = words.get("output.mended", {"seen": seen}) if status is CheckStatus.OK else seen
    return CheckResult(
        check.key, words.get(f"{check.key}.title"), status, exam.clean(seen), exam.clean(advice), mending=mending
    )


async def _tried(check: Check, exam: Exam, words: DoctorTexts) -> tuple[CheckStatus, str, str, DoctorVerdict | None]:
    """Run a check. Return its status, its text and advice, and the verdict if the check came to one."""
    try:
        async with asyncio.timeout(check.seconds):
            verdict = await check.run(exam)
            return *_said(check, verdict, words), verdict
    except PhonedeskError as error:
        return CheckStatus.FAILED, _error(error, words), _advice(error, words), None
    except TimeoutError:
        seen = words.get("output.timeout", {"seconds": f"{check.seconds:g}"})
        return CheckStatus.FAILED, seen, words.get("output.timeout_advice"), None
    except Exception as error:  # noqa: BLE001 - the other checks are still worth making
        # Only its name: an unknown error's words may hold anything.
        seen = words.get("output.stranger", {"error": type(error).__name__})
        return CheckStatus.FAILED, seen, words.get("output.stranger_advice"), None


def _said(check: Check, verdict: DoctorVerdict, words: DoctorTexts) -> tuple[CheckStatus, str, str]:
    key = f"{check.key}.{verdict.case}"
    advised = verdict.status in {CheckStatus.WARNING, CheckStatus.FAILED}
    advice = words.get(f"{key}_advice", verdict.values) if advised else ""
    seen = sentences([words.get(key, verdict.values), *(_by(route, words) for route in verdict.routes)], words.lang)
    return verdict.status, seen, advice


def _by(route: Route, words: DoctorTexts) -> str:
    """Return the sentence about the proxy that was used and where it is set; or why none was."""
    if route.proxy:
        return words.get("output.by_proxy", route.values)
    if not route.source:
        return words.get("output.no_proxy")
    own = f"output.no_proxy_{route.source}"
    return words.get(own if route.source in {LOOPBACK, LOCAL} else "output.no_proxy_by", route.values)


def _advice(error: PhonedeskError, words: DoctorTexts) -> str:
    """Return the error's own advice if it has a text, else that of its kind."""
    if chat_texts(words.lang).find(f"errors.{error.key}", ""):
        return sentences(chat_texts(words.lang).error(error).splitlines()[1:], words.lang)
    return words.advice_of(error.kind) or error.advice


def _error(error: PhonedeskError, words: DoctorTexts) -> str:
    if isinstance(error, SettingsWrong):
        return summary(chat_texts(words.lang), error)
    said = chat_texts(words.lang).error(error).splitlines()[0]
    if chat_texts(words.lang).find(f"errors.{error.key}", ""):
        return said
    return words.get("output.error", {"said": said, "message": error.message})
