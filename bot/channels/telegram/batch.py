"""What Telegram brings, as JSON: one update that cannot be parsed must not keep the others."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from telegram.error import TelegramError

from bot.channels.telegram.request import BotRequest, answer_of
from bot.channels.telegram.update_schema import BROKEN

MOST = 100  # updates in one answer, as the Bot API says
SHOWN = 200  # characters of what cannot be parsed that are kept
# Telegram writes an update's number first. Inside of a text the quotation marks would stand behind backslashes.
_BEGINS = re.compile(r'\{\s*"update_id"\s*:\s*(\d{1,18})(?=[\s,}])')
_NOTHING = re.compile(r'\s*\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\[')


class UpdatesRequest(BotRequest):
    """A request whose answer, where it is none as a whole, is taken apart."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        try:
            return answer_of(payload)
        except (ValueError, RecursionError) as error:
            text = payload.decode("utf-8", "replace")
            found = salvaged(text) if _NOTHING.match(text) else []
            if not found:
                raise TelegramError("Invalid server response") from error
            return {"ok": True, "result": found}


def salvaged(text: str) -> list[dict[str, Any]]:
    """The updates in a piece of JSON that is none, MOST at most. One that is broken has its number, and under
    ``BROKEN`` what is wrong with it; empty where no number is found.
    """
    begins = list(islice(_BEGINS.finditer(text), MOST + 1))
    ends = [*(begin.start() for begin in begins), len(text)][1:]
    return [_one(int(begin[1]), text[begin.start() : end]) for begin, end in zip(begins[:MOST], ends, strict=False)]


def _one(number: int, text: str) -> dict[str, Any]:
    try:
        update, _ = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return {"update_id": number, BROKEN: f"too deep: {text[:SHOWN]}"}
    except ValueError as error:
        return {"update_id": number, BROKEN: f"{error}: {text[:SHOWN]}"}
    return dict(update)
