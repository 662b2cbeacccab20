"""How well screenshots of real pages are read, held against what is known to stand on them.

    python -m tests.acceptance.pages FOLDER            each picture that has a NAME.json beside it
    python -m tests.acceptance.pages FOLDER --tree     with NAME.xml, if there is one
    python -m tests.acceptance.pages FOLDER --bad      tell of what is not right only

NAME.json has the shape that ``phonedesk read --json`` prints, and any part of it. ``question`` may be indexes into its
``messages`` or the words themselves. The app is ``app`` in it, else it is told by the name ("qq-3.png",
"wechat/3.jpg"), else by ``--app``. Texts are compared without blanks and emoji.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent_core.apps.profile import AppProfile, profile
from agent_core.errors import PhonedeskError
from agent_core.perception.compare import normalise
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.page_files import load_dump, load_picture
from agent_core.perception.page_report import MessageReport, PageKind, PageReport, PixelBox, read_page, report
from agent_core.perception.reader import ScreenReader

ENDINGS = {".png", ".jpg", ".jpeg"}
OVERLAP = 0.6  # of two boxes' common area in the area of both, from which on they are the same
_EMOJI = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff\U000e0020-\U000e007f]|[0-9#*]\ufe0f?\u20e3"
)

Truth = Mapping[str, Any]


class Verdict(StrEnum):
    RIGHT = "right"
    WRONG_SURE = "WRONG AND SURE"
    WRONG_DOUBTED = "wrong with a doubt"
    UNSURE = "unsure"  # right, or nothing at all, and the reader says so

    @property
    def bad(self) -> bool:
        return self is not Verdict.RIGHT


@dataclass(frozen=True)
class Finding:
    field: str
    verdict: Verdict
    said: str = ""  # what was read and what stands there, if that differs


@dataclass
class Result:
    name: str
    report: PageReport
    findings: list[Finding]
    seconds: float
    unread: list[bool] = field(default_factory=list)  # for each row of the truth


def plain(text: str) -> str:
    """A text as it is compared."""
    return normalise(_EMOJI.sub("", text))


def judge(right: bool, sure: bool, *, nothing: bool = False) -> Verdict:
    """``nothing``: nothing was read at all, which misleads nobody."""
    if right:
        return Verdict.RIGHT if sure else Verdict.UNSURE
    if nothing:
        return Verdict.UNSURE
    return Verdict.WRONG_SURE if sure else Verdict.WRONG_DOUBTED


def compared(truth: Truth, seen: PageReport) -> list[Finding]:
    """A finding for each field of ``truth``."""
    found: list[Finding] = []
    wanted_page = page_of(truth)
    if wanted_page is not None:
        said = "" if seen.page is wanted_page else f"{seen.page} for {wanted_page}"
        found.append(Finding("page", judge(not said, True), said))
    checks = {
        "title": _title,
        "messages": _messages,
        "question": _question,
        "input": _input,
        "send": _send,
        "rows": _rows,
    }
    for key, check in checks.items():
        if key in truth and (truth[key] or wanted_page is PageKind.CHAT):  # what no other page has is no finding
            found += check(truth, seen)
    return found


def page_of(truth: Truth) -> PageKind | None:
    if "page" in truth:
        return PageKind(truth["page"])
    if truth.get("title") or truth.get("messages"):
        return PageKind.CHAT
    return PageKind.LIST if truth.get("rows") else None


def _title(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    wanted = truth["title"]
    if wanted is None:
        return
    if seen.title is None:
        yield Finding("title", Verdict.UNSURE, f"none for {wanted}")
        return
    if "text" in wanted:
        right = plain(seen.title.text) == plain(wanted["text"])
        said = f"{seen.title.text!r} for {wanted['text']!r}"
        yield Finding("title", judge(right, seen.title.sure), "" if right else said)
    if "group" in wanted:
        right = seen.title.group == wanted["group"]
        yield Finding("title.group", judge(right, True), "" if right else f"{seen.title.group}")


def _messages(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    """One finding for each message that stands there, and one for each that does not."""
    wanted, read = truth["messages"], seen.messages
    if seen.page is not PageKind.CHAT:
        yield Finding("messages", Verdict.UNSURE, "the page was not read")
        return
    for before, after in _aligned(wanted, read):
        if before is None and after is not None:
            yield Finding("message", judge(False, after.sure), f"{_shown(after)} for nothing")
        elif before is not None and after is None:
            yield Finding("message", judge(False, not seen.doubts), f"nothing for {before}")
        elif before is not None and after is not None:
            right = _same(before, after)
            yield Finding("message", judge(right, after.sure), "" if right else f"{_shown(after)} for {before}")


def _aligned(
    wanted: Sequence[Truth], read: Sequence[MessageReport]
) -> Iterator[tuple[Truth | None, MessageReport | None]]:
    """What stands there beside what was read of it."""
    left = [plain(str(message.get("text", ""))) or str(message.get("kind", "")) for message in wanted]
    right = [plain(message.text) or message.kind.value for message in read]
    for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        both = min(b - a, d - c)
        yield from zip(wanted[a : a + both], read[c : c + both], strict=True)
        yield from ((message, None) for message in wanted[a + both : b])
        yield from ((None, message) for message in read[c + both : d])


def _same(wanted: Truth, seen: MessageReport) -> bool:
    return (
        wanted.get("side", seen.side.value) == seen.side.value
        and wanted.get("kind", seen.kind.value) == seen.kind.value
        and plain(str(wanted.get("text", seen.text))) == plain(seen.text)
    )


def _shown(message: MessageReport) -> str:
    return f"{message.side}/{message.kind} {message.text!r}{'' if message.sure else ' (unsure)'}"


def _question(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    if seen.page is not PageKind.CHAT:
        yield Finding("question", Verdict.UNSURE, "the page was not read")
        return
    asked = [seen.messages[index] for index in seen.question]
    wanted = truth["question"]
    if "messages" in truth or not all(isinstance(part, int) for part in wanted):
        parts = [truth["messages"][part] if isinstance(part, int) else {"text": part} for part in wanted]
        right = len(parts) == len(asked) and all(map(_same, parts, asked))
    else:
        parts, right = wanted, list(seen.question) == list(wanted)
    sure = not seen.doubts and all(message.sure for message in asked)
    said = f"{[_shown(message) for message in asked]} for {parts}"
    yield Finding("question", judge(right, sure), "" if right else said)


def _input(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    wanted = truth["input"]
    if wanted is None or seen.input is None:
        right = wanted is None and seen.input is None
        said = "" if right else f"{seen.input} for {wanted}"
        yield Finding("input", judge(right, True, nothing=seen.input is None), said)
        return
    if wanted.get("box"):
        right = _overlap(seen.input.box, wanted["box"]) >= OVERLAP
        yield Finding("input.box", judge(right, True), "" if right else f"{seen.input.box} for {wanted['box']}")
    if "text" in wanted:
        right = plain(seen.input.text) == plain(wanted["text"])
        said = f"{seen.input.text!r} for {wanted['text']!r}"
        yield Finding("input.text", judge(right, seen.input.sure), "" if right else said)


def _send(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    wanted = truth["send"]
    if wanted is None or seen.send is None:
        right = wanted is None and seen.send is None
        said = "" if right else f"{seen.send} for {wanted}"
        yield Finding("send", judge(right, True, nothing=seen.send is None), said)
        return
    if "state" in wanted:
        right = seen.send.state.value == wanted["state"]
        yield Finding("send.state", judge(right, True), "" if right else f"{seen.send.state} for {wanted['state']}")
    if wanted.get("box"):
        right = seen.send.box is not None and _overlap(seen.send.box, wanted["box"]) >= OVERLAP
        yield Finding("send.box", judge(right, True), "" if right else f"{seen.send.box} for {wanted['box']}")


def _rows(truth: Truth, seen: PageReport) -> Iterator[Finding]:
    read = {plain(row.name): row for row in seen.rows}
    for row in truth["rows"]:
        known = read.pop(plain(row["name"]), None)
        if known is None:
            yield Finding("row", Verdict.UNSURE, f"nothing for {row}")
            continue
        yield Finding("row", Verdict.RIGHT)
        if "preview" in row:
            right = plain(known.preview) == plain(row["preview"])
            yield Finding(
                "row.preview", judge(right, True), "" if right else f"{known.preview!r} for {row['preview']!r}"
            )
        if "unread" in row:
            right = known.unread == row["unread"]
            said = f"{known.name}: {known.unread} for {row['unread']}"
            yield Finding("row.unread", judge(right, True), "" if right else said)
    for extra in read.values():
        yield Finding("row", Verdict.WRONG_SURE, f"{extra.name!r} for nothing")


def _overlap(left: PixelBox, right: Sequence[int]) -> float:
    width = min(left[2], right[2]) - max(left[0], right[0])
    height = min(left[3], right[3]) - max(left[1], right[1])
    common = max(0, width) * max(0, height)
    both = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (left, right)) - common
    return common / both if both else 0.0


def totals(results: Sequence[Result]) -> list[str]:
    """The figures of all pictures."""
    counted = Counter((finding.field, finding.verdict) for result in results for finding in result.findings)
    titles = [f for result in results for f in result.findings if f.field == "title"]
    named = [f for f in titles if f.verdict is Verdict.RIGHT or (f.verdict is Verdict.UNSURE and not f.said)]
    questions = [f for result in results for f in result.findings if f.field == "question"]
    answered = [f for f in questions if not f.said]
    pages = [f for result in results for f in result.findings if f.field == "page"]
    unread = [f for result in results for f in result.findings if f.field == "row.unread"]
    rows = sum(f.field == "row" and f.said.startswith("nothing") for r in results for f in r.findings)
    return [
        f"page seen: {_share(sum(f.verdict is Verdict.RIGHT for f in pages), len(pages))}",
        f"title right: {_share(len(named), len(titles))}",
        f"title right and sure: {_share(counted['title', Verdict.RIGHT], len(titles))}",
        f"title wrong and sure: {counted['title', Verdict.WRONG_SURE]}",
        f"question right: {_share(len(answered), len(questions))}",
        f"question wrong without a doubt: {counted['question', Verdict.WRONG_SURE]}",
        f"unread marks right: {_share(counted['row.unread', Verdict.RIGHT], len(unread) + rows)}",
        *(
            f"{name}: " + ", ".join(f"{v} {counted[name, v]}" for v in Verdict if counted[name, v])
            for name in dict.fromkeys(name for name, _ in counted)
        ),
    ]


def _share(some: int, whole: int) -> str:
    return f"{some / whole:.0%} ({some} of {whole})" if whole else "-"


def app_of(truth: Truth, path: Path, given: str) -> AppProfile:
    """The app that a picture is of. KeyError if nothing tells."""
    if truth.get("app"):
        return profile(str(truth["app"]))
    name = f"{path.parent.name}/{path.stem}".lower()
    for key, words in {"wechat": ("wechat", "weixin", "wx"), "qq": ("qq",)}.items():
        if any(word in name for word in words):
            return profile(key)
    return profile(given)


async def check(reader: ScreenReader, path: Path, app: str, with_tree: bool) -> Result:
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    frame = load_picture(path)
    dump = path.with_suffix(".xml")
    nodes = load_dump(dump, frame.size) if with_tree and dump.exists() else None
    begun = time.monotonic()
    seen = report(await read_page(reader, frame, nodes, app_of(truth, path, app)))
    return Result(path.name, seen, compared(truth, seen), time.monotonic() - begun)


def pictures(folder: Path) -> list[Path]:
    """Those with a truth beside them."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    return [path for path in found if path.with_suffix(".json").exists()]


def told(result: Result, only_bad: bool) -> Iterator[str]:
    shown = [finding for finding in result.findings if finding.verdict.bad or not only_bad]
    if not shown:
        return
    yield f"{result.name} ({result.seconds:.1f} s)"
    right = Counter(finding.field for finding in result.findings if not finding.verdict.bad)
    if not only_bad and right:
        yield "  right: " + ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in right.items())
    for finding in shown:
        if finding.verdict.bad:
            yield f"  {finding.field}: {finding.verdict} {finding.said}".rstrip()
    for doubt in result.report.doubts:
        yield f"  doubt: {doubt}"


async def main(folder: Path, app: str, with_tree: bool, only_bad: bool) -> int:
    reader = ScreenReader(ocr=OcrEngine(), model=None)
    results = []
    for path in pictures(folder):
        try:
            result = await check(reader, path, app, with_tree)
        except (PhonedeskError, KeyError, ValueError) as error:
            sys.stdout.write(f"{path.name}: {type(error).__name__}: {error}\n")
            continue
        results.append(result)
        sys.stdout.writelines(f"{line}\n" for line in told(result, only_bad))
        sys.stdout.flush()
    sys.stdout.write(f"\n{len(results)} pictures\n" + "\n".join(totals(results)) + "\n")
    return 0 if results else 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--app", default="", help="qq or wechat, if a picture's name does not tell")
    parser.add_argument("--tree", action="store_true", help="use NAME.xml")
    parser.add_argument("--bad", action="store_true", help="tell only of what is not right")
    chosen = parser.parse_args()
    sys.exit(asyncio.run(main(chosen.folder, chosen.app, chosen.tree, chosen.bad)))
