"""The limits on a task's actions.

A reply task may touch its own app, but nothing that pays, deletes, adds, calls or grants. Any other task may touch the
apps that are named for it, and a person is asked before a risky tap. In both, an action runs only if the window and the
target still match the picture that it was proposed on.
"""

from __future__ import annotations

import re

from PIL import ImageChops

from agent_core.actions.types import (
    Action,
    Back,
    DoubleTap,
    Home,
    Launch,
    LongPress,
    PressKey,
    Swipe,
    Tap,
    Type,
    TypeName,
)
from agent_core.apps.names import packages_named
from agent_core.apps.profile import profile_of_package
from agent_core.devices.base import Frame
from agent_core.geometry import Box, Point
from agent_core.perception.badges import reds
from agent_core.perception.kinds import call_line
from agent_core.perception.popups import popup_in
from agent_core.perception.readings import Bubble, BubbleKind, BubbleState, ChatScreen, Source
from agent_core.perception.tree_rows import mark_state
from agent_core.policies.base import (
    Situation,
    Verdict,
    acts_on_screen,
    allow,
    as_touch,
    ask,
    bare,
    block,
    first_touch,
    touched,
)
from agent_core.policies.risk import grown, risk_at
from agent_core.texts import Listed

_LINK = re.compile(r"[a-z][a-z0-9+.-]*://|\bwww\.|\.(?:com|cn|net|org|cc|top|xyz)\b|\d{7,}", re.IGNORECASE)
# A tap on any other kind opens something: a packet, a card, a place, a file, a call.
_HARMLESS = {BubbleKind.TEXT, BubbleKind.IMAGE, BubbleKind.STICKER, BubbleKind.VOICE}
_HALF_BAR = 0.07  # of the width: half the height of a hold-to-talk bar, and some margin
_BESIDE_A_MARK = 0.06  # of the width: a mark is this wide, and a finger is not more exact
_ROW = 0.05  # of the width: how far a bubble reaches above and below its words
_CARD = 0.15  # of the width: how far a card reaches above and below its words
_RED = 0.0002  # of the width squared: a fifth of the pixels of the smallest mark
_TOUCHING = Tap | DoubleTap | LongPress | Type | TypeName | PressKey | Swipe


def _leaves_a_dialog(proposal: Action, situation: Situation) -> bool:
    """Tell whether ``proposal`` taps the refusing button of a system dialog over the app."""
    if not isinstance(proposal, Tap):
        return False
    popup = popup_in(situation.window, situation.readings, situation.frame)
    if popup is None or not popup.system or popup.by_person:
        return False
    return popup.box.contains(Point.from_relative(proposal.element, situation.size))


class OneApp:
    """The policy that lets only the task's app be opened and touched. Outside of it only the way back is allowed."""

    name = "one_app"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        profile = situation.profile
        if profile is None:
            return allow(proposal)
        if isinstance(proposal, Launch):
            allowed = {bare(n) for n in (profile.name, *profile.aliases, *profile.packages)}
            if bare(proposal.app) not in allowed:
                return block(situation.say("gate.other_app", app=proposal.app, allowed=profile.known_as))
            return allow(proposal)
        if situation.in_app or isinstance(proposal, Back | Home):
            return allow(proposal)
        if isinstance(proposal, Tap) and bare(situation.target(proposal.element)) == bare(profile.name):
            return allow(proposal)  # the app's icon on the launcher
        if _leaves_a_dialog(proposal, situation):
            return allow(proposal)
        if isinstance(proposal, _TOUCHING):
            return block(situation.say("gate.tap_outside", app=profile.known_as))
        return allow(proposal)


class AllowedApps:
    """The policy that lets only the apps that the task names be opened and touched. Without names, all are allowed."""

    name = "allowed_apps"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if not situation.apps:
            return allow(proposal)
        listed = Listed(situation.apps)
        packages = {package for app in situation.apps for package in packages_named(app)}
        names = {bare(app) for app in situation.apps}
        if isinstance(proposal, Launch):
            if bare(proposal.app) in names or packages & set(packages_named(proposal.app)):
                return allow(proposal)
            return block(situation.say("gate.other_app", app=proposal.app, allowed=listed))
        inside = situation.window.package in packages
        icon = isinstance(proposal, Tap) and bare(situation.target(proposal.element)) in names
        if isinstance(proposal, _TOUCHING) and not inside and not icon and not _leaves_a_dialog(proposal, situation):
            return block(situation.say("gate.tap_outside", app=listed))
        return allow(proposal)


class NothingRisky:
    """The policy that blocks risky touches in a reply task.

    Those are taps on anything that pays, deletes, adds, calls, installs or grants rights, and on links or numbers in
    messages.
    """

    name = "nothing_risky"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if isinstance(as_touch(proposal, situation.size), LongPress | DoubleTap):
            return block(situation.say("gate.long_press_blocked"))
        pair = touched(proposal, situation.size)
        if pair is None or situation.profile is None:
            return allow(proposal)
        target = risk_at(proposal, situation, situation.profile, situation.targets(proposal))
        if target:
            return block(situation.say("gate.risky_blocked", target=target))
        if self._beside_the_title(Point.from_relative(pair, situation.size), situation):
            return block(situation.say("gate.title_bar"))
        if _call_at(Point.from_relative(pair, situation.size), situation):
            return block(situation.say("gate.call_line"))
        said = _opens_at(Point.from_relative(pair, situation.size), situation)
        if said is not None:
            return block(situation.say("gate.link_blocked", target=said.text[:40]))
        return allow(proposal)

    @staticmethod
    def _beside_the_title(point: Point, situation: Situation) -> bool:
        """Tell whether a point is at the icons right of a chat's title (call, settings), which have no text."""
        if situation.chat is None or situation.profile is None:
            return False
        title, width = situation.chat.title_box, situation.size[0]
        if title is not None:  # a header ends about one title height below the title
            return point.x >= title.right and point.y < title.bottom + title.height
        right, below = situation.profile.title_region[2], situation.profile.messages_region[1]
        return point.x >= right * width and point.y < below * situation.size[1]


class AskBeforeRisk:
    """The policy that asks a person, in tasks other than replies, before a tap that pays, deletes, adds, calls or
    grants.
    """

    name = "ask_before_risk"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        in_front = profile_of_package(situation.window.package)
        target = risk_at(proposal, situation, in_front, situation.labels(proposal))
        if not target:
            return allow(proposal)
        if isinstance(proposal, Tap):
            return ask(proposal, situation.say("gate.ask_risky", target=target))
        return block(situation.say("gate.risky_tap_only", target=target))


class DeliveryAlone:
    """The policy that keeps the model away from the controls that only the reply flow may use.

    Those are Send, Enter, stickers, quick replies, pasting and everything else at a chat's input, and the red mark of a
    failed text, however old, because a tap on it sends the text again.
    """

    name = "delivery_alone"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if isinstance(proposal, PressKey) and proposal.key == "enter":
            return block(situation.say("gate.enter_blocked"))
        if not situation.in_app or situation.profile is None:
            return allow(proposal)
        begins = first_touch(proposal)
        top = _bar_top(situation.chat, situation.size[0])
        if begins is not None and top is not None and Point.from_relative(begins, situation.size).y >= top:
            # Send, icons without words and the keys of a keyboard are not for the model. A swipe there glides over the
            # keys, or holds a button that records.
            return block(situation.say("gate.swipe_in_bar" if isinstance(proposal, Swipe) else "gate.input_bar"))
        if begins is not None and red_mark_at(Point.from_relative(begins, situation.size), situation):
            return block(situation.say("gate.red_mark"))
        ours = {bare(text) for text in situation.profile.delivery_only}
        target = next((one.text for one in situation.targets(proposal) if bare(one.text) in ours), "")
        if target:
            return block(situation.say("gate.delivery_only", target=target))
        return allow(proposal)


def _bar_top(chat: ChatScreen | None, width: int) -> int | None:
    """Return the y where the bar below the messages begins: at the input, or at the hold-to-talk bar in its place."""
    if chat is None:
        return None
    if chat.input_box is not None:
        return chat.input_box.top
    return None if chat.keyboard_icon is None else round(chat.keyboard_icon.y - _HALF_BAR * width)


def _bubble_at(point: Point, situation: Situation) -> Bubble | None:
    bubbles = situation.chat.bubbles if situation.chat else ()
    return next((b for b in bubbles if b.box is not None and b.box.contains(point)), None)


def _opens_at(point: Point, situation: Situation) -> Bubble | None:
    """Return the message that a touch at ``point`` opens, or None: a link, or the nearest message that is not text.

    A card, a packet or a file is larger than the words that are read on it.
    """
    said = _bubble_at(point, situation)
    if said is not None and _LINK.search(said.text):
        return said
    placed = [b for b in situation.chat.bubbles if b.box is not None] if situation.chat else []
    near = min(placed, key=lambda b: _rows_away(point, b), default=None)
    if near is None or near.kind in _HARMLESS or _rows_away(point, near) > _CARD * situation.size[0]:
        return None
    return near


def _rows_away(point: Point, bubble: Bubble) -> int:
    """Return how many pixels above or below a message a point is; 0 if it is beside it."""
    box = bubble.box
    return 0 if box is None else max(box.top - point.y, point.y - box.bottom, 0)


def _call_at(point: Point, situation: Situation) -> bool:
    """Tell whether a point lies in a row of a chat that reports a call: a touch there calls back."""
    if situation.chat is None:
        return False
    lines = [b.box for b in situation.chat.bubbles if b.kind is BubbleKind.CALL and b.box is not None]
    lines += [r.box for r in situation.readings if call_line(r.text, in_picture=r.source is not Source.TREE)]
    reach = round(_ROW * situation.size[0])
    return any(box.top - reach <= point.y < box.bottom + reach for box in lines)


def red_mark_at(point: Point, situation: Situation) -> bool:
    """Tell whether a point of a chat lies on or beside the red mark of a failed message.

    The mark is left of our bubble. Each of three signs is enough: a bubble that was read as failed, the mark's node in
    the tree, and red pixels at a place where no bubble was read.
    """
    chat, profile, width = situation.chat, situation.profile, situation.size[0]
    if chat is None or profile is None:
        return False
    reach = round(_BESIDE_A_MARK * width)
    failed = [b.box for b in chat.bubbles if b.state is BubbleState.FAILED and b.box is not None]
    areas = [Box(0, box.top - reach, box.left + reach, box.bottom + reach) for box in failed]
    marks = [n.box for n in situation.nodes or () if mark_state(n, profile) is BubbleState.FAILED]
    areas += [grown(box, reach, reach) for box in marks]
    if any(area.contains(point) for area in areas):
        return True
    header = chat.title_box.bottom if chat.title_box else round(profile.messages_region[1] * situation.size[1])
    if situation.frame is None or point.y < header or _bubble_at(point, situation) is not None:
        return False
    around = Box(point.x - reach, max(header, point.y - reach), point.x + reach, point.y + reach)
    return reds(situation.frame.image, around) >= _RED * width * width


class FreshFrame:
    """The policy that blocks actions on a screen that has changed since the model saw it.

    Rows of a chat list move between observation and tap, so a tap is blocked if its place has changed, and every touch
    or text if another window has come to the front. In tasks other than replies only the window counts, because a
    button may pulse for ever, and, for a tap that a person allowed, its surroundings.
    """

    name = "fresh_frame"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        pair = touched(proposal, situation.size)
        if not acts_on_screen(proposal) or situation.frame is None or situation.now is None:
            return allow(proposal)
        moved = situation.window_now is not None and situation.window_now != situation.window
        if situation.profile is None:
            pair = None
        if moved or situation.lapsed or (pair is not None and not _same_place(pair, situation.frame, situation.now)):
            return block(situation.say("gate.screen_moved"))
        return allow(proposal)


def _same_place(pair: tuple[int, int], proposed_on: Frame, now: Frame) -> bool:
    """Tell whether the place that will be touched is, pixel by pixel, as the model saw it."""
    if now.digest == proposed_on.digest:
        return True
    if now.size != proposed_on.size:
        return False
    width, height = now.size
    point = Point.from_relative(pair, now.size)
    reach = height // 40
    box = Box(
        max(0, point.x - 4 * reach),
        max(0, point.y - reach),
        min(width, point.x + 4 * reach),
        min(height, point.y + reach),
    ).as_tuple()
    return ImageChops.difference(now.image.crop(box), proposed_on.image.crop(box)).getbbox() is None
