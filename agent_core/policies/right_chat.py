"""The knowledge base is asked in the contact's own chat only, which is recognised by the whole name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_core.actions.types import Action, GetKnowledgeData
from agent_core.geometry import SCALE, Point
from agent_core.perception.compare import (
    Likeness,
    alike,
    counts_members,
    fold,
    likeness,
    same_name,
    skeleton,
    without_count,
)
from agent_core.perception.lists import ChatRow
from agent_core.perception.readings import ChatScreen
from agent_core.policies.base import Situation, Verdict, allow, block, touched
from agent_core.session import GateState

CERTAIN = 0.88  # a name that was read with less confidence may be another name
MOST_ALIKE = 3
_BESIDE = 0.04  # of the width: how far a row of a list reaches above its name and below its preview
_CUT = re.compile(r"(?:…|\.{2,3}|⋯)$")


def title_likeness(chat: ChatScreen, contact: str) -> Likeness:
    """Compare the name in the chat's header with the contact's. Any other chat and any group are OTHER."""
    if not contact or chat.group:
        return Likeness.OTHER
    return likeness(chat.title, contact, drawn=chat.drawn)


def row_likeness(row: ChatRow, contact: str) -> Likeness:
    """Compare a row's name with the contact's. Return ALIKE if it is cut off or may be misread."""
    likes = {likeness(row.name, one, drawn=row.confidence < 1.0) for one in {contact, without_count(contact)}}
    if Likeness.SAME in likes:
        return Likeness.SAME
    start = _CUT.sub("", row.name)
    cut_off = start != row.name and skeleton(contact).startswith(skeleton(start))
    if Likeness.ALIKE in likes or cut_off or row.confidence < CERTAIN or fold(row.name) == fold(contact):
        return Likeness.ALIKE
    return Likeness.OTHER


def names_alike(rows: Sequence[ChatRow], contact: str) -> list[str]:
    """Return the names of rows that a person who misspelt it may have meant by ``contact``, the most alike first."""
    if not contact:
        return []
    names = {fold(row.name): row.name for row in rows if row.name != contact}
    return [names[one] for one in alike(fold(contact), names)][:MOST_ALIKE]


def is_contacts(chat: ChatScreen, gate: GateState) -> bool:
    """Tell whether the chat is the contact's, by its whole name or because a person confirmed it.

    A group may have a contact's name, so only a person's confirmation counts for a group.
    """
    by_name = title_likeness(chat, gate.contact) is Likeness.SAME
    return by_name or gate.confirmed(chat.title, chat.title_print, group=chat.group)


def is_named_group(chat: ChatScreen, contact: str) -> bool:
    """Tell whether the chat is the group that ``contact`` names together with its number of members, as in "11(3)"."""
    if not counts_members(contact):
        return False
    names = [contact, without_count(contact)] if chat.group else [contact]
    return any(same_name(chat.title, one, drawn=chat.drawn) for one in names)


class RightChat:
    """The policy that blocks opening another contact's row of a list, and queries in another chat.

    Three kinds of chats are left to the reply flow, which asks a person: an unsure chat, one whose name only looks like
    the contact's, and a group that the task names.
    """

    name = "right_chat"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if (refusal := _of_rows(proposal, situation)) is not None:
            return refusal
        contact, chat = situation.gate.contact, situation.chat
        if not isinstance(proposal, GetKnowledgeData) or not contact or chat is None or not chat.sure:
            return allow(proposal)
        alike = title_likeness(chat, contact) is Likeness.ALIKE
        if alike or is_contacts(chat, situation.gate) or is_named_group(chat, contact):
            return allow(proposal)
        return block(situation.say(wrong_chat(chat), title=chat.title, contact=contact))


def row_at(proposal: Action, situation: Situation) -> ChatRow | None:
    """Return the row of the list or search results that ``proposal`` may click, or None."""
    pair = touched(proposal, situation.size)
    if pair is None:
        return None
    point = Point.from_relative(pair, situation.size)
    reach = round(_BESIDE * situation.size[0])
    near = [row for row in situation.rows if row.box.top - reach <= point.y < row.box.bottom + reach]
    return min(near, key=lambda row: max(row.box.top - point.y, point.y - row.box.bottom, 0), default=None)


def _of_rows(proposal: Action, situation: Situation) -> Verdict | None:
    """Return a block if the action would open a row that is not the contact's, else None.

    Opening a chat removes its unread mark. A row whose name only looks like the contact's may be opened if no row has
    the exact name.
    """
    gate, row = situation.gate, row_at(proposal, situation)
    if row is None or not gate.contact or row == situation.row:
        return None
    if row in situation.strangers:
        return block(situation.say("gate.stranger", contact=gate.contact))
    same = [one for one in situation.rows if row_likeness(one, gate.contact) is Likeness.SAME]
    like = row_likeness(row, gate.contact)
    told = bool(gate.chat_confirmed) and row_likeness(row, gate.chat_confirmed) is Likeness.SAME
    mine = situation.row or (same[0] if len(same) == 1 else None)
    if situation.row is None and (told or like is Likeness.SAME or (like is Likeness.ALIKE and not same)):
        return None
    if mine is None:
        return block(situation.say("gate.other_row_search", title=row.name, contact=gate.contact))
    x, y = _relative(mine, situation)
    key = "gate.other_row" if like is Likeness.OTHER else "gate.other_namesake"
    return block(situation.say(key, title=row.name, contact=gate.contact, x=x, y=y))


def _relative(row: ChatRow, situation: Situation) -> tuple[int, int]:
    """Return the middle of a row in model coordinates (0–1000)."""
    (width, height), point = situation.size, row.box.center
    return point.x * SCALE // width, point.y * SCALE // height


def wrong_chat(chat: ChatScreen | None) -> str:
    """Return the text key that says that this is another chat. A group may have exactly the contact's name."""
    return "gate.wrong_group" if chat is not None and chat.group else "gate.wrong_chat"
