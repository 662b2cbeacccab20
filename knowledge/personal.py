"""Finds personal data in a text: numbers, addresses, names, if they can be told from other words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agent_core.apps.profile import secret_rules

MASK = "***"
_WIDE = "＠．－＋＿"
_GAP = r"[ \-–—()]"
_PERSONAL = re.compile(
    r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+"  # an e-mail address
    r"|(?<![A-Za-z])wxid_\w+"
    # A phone, an order, a parcel, a card: 7 or more digits, in groups of which the last has four; "13 14 15 16" is
    # none.
    rf"|(?<![A-Za-z\d])[A-Za-z]{{0,12}}[\-_]?\+?(?=(?:{_GAP}{{0,2}}\d){{7}})"
    rf"(?:\d{{7,}}|\d{{2,4}}(?:{_GAP}{{1,2}}\d{{3,4}})*{_GAP}{{1,2}}\d{{4,}})[A-Za-z\d]*"
    r"|(?<![A-Za-z\d])(?:[A-Za-z]*\d){8,}[A-Za-z]*"  # an order number with letters between
    # A place: a street with a number, or a house, an entrance and a room one after the other.
    r"|[\u3400-\u9fff]{0,12}[路街道巷弄村镇]\s*\d{1,5}\s*号(?:\s*\d{1,4}\s*(?:号楼|[楼栋幢座层室]|单元))*"
    r"|(?:\d{1,4}\s*(?:号楼|[栋幢座]|单元)\s*){1,2}\d{1,4}\s*[室号层]?"
    r"|(?:收件人|收货人|联系人|姓名|名字|我姓|我叫)\s*[是叫:：]?\s*[\u3400-\u9fff]{1,4}"  # somebody's name
)


def personal_data(text: str) -> Sequence[str]:
    """Return the parts of ``text`` that look like a person's number, address or name, to warn before approval."""
    return tuple(match[0] for match in _PERSONAL.finditer(_plain(text)))


def masked(text: str) -> str:
    """Return ``text`` with personal data replaced by three stars; then wide digits and letters are plain, too."""
    plain = _plain(text)
    return _PERSONAL.sub(MASK, plain) if _PERSONAL.search(plain) else text


def is_personal(text: str) -> bool:
    """Tell whether ``text`` holds personal data: what ``personal_data`` finds, or what no picture may show."""
    plain = _plain(text)
    return bool(_PERSONAL.search(plain)) or any(
        re.search(rule.value, plain, re.IGNORECASE) and (not rule.label or re.search(rule.label, plain, re.IGNORECASE))
        for rule in secret_rules(None).rules
    )


def _plain(text: str) -> str:
    """Return wide digits and letters as plain ones; other signs stay, so that a text keeps its punctuation."""
    return "".join(
        unicodedata.normalize("NFKC", char) if "！" <= char <= "～" and (char.isalnum() or char in _WIDE) else char
        for char in text
    )
