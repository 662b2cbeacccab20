"""Plain requests with a picture: write down its texts, in the form that the instruction shows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from simulator.model.reading import Seen, bubbles

_HINT = re.compile(r"^(?:说点什么|发消息|发送消息|请输入.*|按住说话|发送|Send)[.…。]*$", re.IGNORECASE)


_BAR = 0.4  # of its width: a picture higher than this shows more than the bar of an input


def transcribe(instruction: str, seen: Sequence[Seen], size: tuple[int, int]) -> str:
    """Return the lines from the top; as JSON lines if the instruction shows the fields title, button, side or draft.

    ``size``: of the picture, in pixels.
    """
    lines = [item for item in seen if item.text]
    if '{"title"' in instruction:
        return _json({"title": _title(lines)})
    if '{"button"' in instruction:
        return _json({"button": "".join(item.text for item in lines)})
    if '{"side"' in instruction:
        found = bubbles(seen, top=-1, bottom=1001)
        if not found:
            return _json({"empty": True})
        return "\n".join(_json({"side": "right" if b.mine else "left", "text": b.text}) for b in found)
    if '{"draft"' in instruction:
        if size[1] > _BAR * size[0] and not any(_HINT.match(item.text) for item in lines):
            return _json({"draft": None})
        return _json({"draft": "".join(item.text for item in lines if not _HINT.match(item.text) and item.x < 850)})
    return "\n".join(item.text for item in lines) or "(no text)"


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def _title(seen: Sequence[Seen]) -> str:
    """Return the leftmost text that is neither an arrow nor a count."""
    words = [
        item for item in sorted(seen, key=lambda item: item.left) if not re.fullmatch(r"[<＜〈‹(（]\S*", item.text)
    ]
    return words[0].text if words else ""
