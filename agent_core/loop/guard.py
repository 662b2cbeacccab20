"""The loop guard: detects repeats, cycles, actions without effect, endless waits, and apps or dialogs nobody opened.

The model is warned when a problem begins and once more if it continues, only of the most pressing problem of a step;
then a person is asked. The counts are stored in the session. Ending the run and asking a person are the ways out of
every loop and are never blocked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from agent_core.actions.types import Action, Back, Finish, Home, Interact, Launch, PressKey, Swipe, TakeOver, Wait
from agent_core.apps.names import packages_named
from agent_core.apps.profile import profile_of_package
from agent_core.devices.base import WindowKind
from agent_core.loop import questions
from agent_core.loop.launching import allowed_packages, is_home
from agent_core.loop.outcome import ActResult
from agent_core.perception.compare import Likeness, likeness, same_name
from agent_core.perception.observer import Observation
from agent_core.perception.popups import Popup, popup_in
from agent_core.policies.base import SAME_TARGET, Judgement, first_touch, near
from agent_core.policies.customer_reply import UnreadPage
from agent_core.session import Session, Setbacks
from agent_core.texts import Listed, rule_words, say, sentences

TOLD_AT = 3  # in a row
ASKED_AT = 6
MOST_FAILED = 8  # steps in a row that were not ok
MOST_STILL = 12  # steps on an unchanged screen, whatever is done
STRAYS = 3  # how often an app may come to the front by itself; the next time, a person is asked
# The same action, whatever its effect: a list may be long, and a number may be counted up by taps.
MOST_SAME, MOST_UNREAD, MOST_SWIPES = 16, 40, 60  # if nothing can be read, nobody can tell whether it helps
FEW = 3  # alternating actions: with so few different ones nothing is being searched
MOST_BY_TURNS = 24  # if the screens show no new text; otherwise MOST_SWIPES
MOST_STALE = 30  # screens in a row whose whole text was read before
WAITED_STILL, WAITED_MOVING, MOST_WAITS = 60, 300, 30  # seconds; waits while the screen moves
KEPT_TEXTS = 40  # the number of screens whose texts are remembered
STATUS_BAR = 0.045  # of the height: the clock there is not news

EXITS = (Finish, TakeOver, Interact)
TOUCHING = frozenset({"tap", "double_tap", "long_press", "swipe", "type", "type_name"})
MOVING = TOUCHING | {"back"}
# After these, whatever is in front is expected: the run opened it, or a person did.
OPENING = frozenset({"launch", "home", "back", "press_key", "take_over", "interact"})


class Recovery:
    """The loop guard of one run: call ``look`` for each screen, then ``proposed`` with the model's proposal for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._read = False  # whether any text of the newest screen was read

    @property
    def _back(self) -> Setbacks:
        return self._session.setbacks

    def look(self, seen: Observation, *, unchanged: bool) -> str:
        """Return the warning to the model about this screen, or "". ``unchanged``: it is as before the last action."""
        self._after_people(seen)
        last = self._last
        moved = last is not None and last["kind"] in MOVING and self._session.steps[-1].ok
        self._count(seen, unchanged=unchanged, moved=moved)
        popup = self._popup(seen)
        act = self._of_act(last) if unchanged and moved else ""
        told = self._of_popup(popup, seen) or self._of_app(seen, popup) or act or self._of_waiting()
        return told or ("" if unchanged else self._of_same())

    def proposed(self, action: Action) -> str:
        """Return why a person must be asked now, after which all counts start again; "" if the run may continue."""
        back = self._back
        back.same = back.same + 1 if _same(back.last, action) else 1
        if back.same == 1:
            back.last = action.model_dump(mode="json")
        x, y = first_touch(action) or (0, 0)
        place = (0, 0) if isinstance(action, Swipe) else (x, y)  # a list may be swiped anywhere
        back.recent = [*back.recent, (action.kind, *place)][-MOST_SWIPES:]
        why = self._refused_end() if isinstance(action, EXITS) else self._why(action)
        if why:
            self.forget()
        return why

    def forget(self) -> None:
        """Reset the counts, because a person was asked and lets the run continue with the current screen."""
        back = self._back
        self._session.setbacks = Setbacks(
            told=back.told, allowed=[*back.allowed, *back.strays], steps=back.steps, asked=back.asked
        )

    def _after_people(self, seen: Observation) -> None:
        """Accept the app in front after a question: the person who was asked knows it, and may have opened it."""
        asked = len(self._session.questions)
        if asked == self._back.asked:
            return
        self.forget()
        self._back.asked = asked
        self._back.steps = len(self._session.steps)
        if seen.window.package is not None:
            self._back.allowed.append(seen.window.package)

    def _count(self, seen: Observation, *, unchanged: bool, moved: bool) -> None:
        back, steps = self._back, self._session.steps
        for step in steps[back.steps :]:
            back.failed = 0 if step.ok else back.failed + 1
        back.steps = len(steps)
        back.still = back.still + 1 if unchanged else 0
        back.unmoved = back.unmoved + int(moved) if unchanged else 0
        waited = float(self._last["duration"]) if self._last is not None and self._last["kind"] == "wait" else None
        still = waited is not None and unchanged
        moving = waited is not None and not unchanged
        back.waits, back.waited = (back.waits + 1, back.waited + (waited or 0)) if still else (0, 0.0)
        if moving:
            back.moving_waits, back.moving_waited = back.moving_waits + 1, back.moving_waited + (waited or 0)
        elif not still:
            back.moving_waits, back.moving_waited = 0, 0.0
        said = self._said(seen)
        self._read = bool(said)
        back.stale = 0 if said and said not in back.texts else back.stale + 1
        if said:
            back.texts = [*(one for one in back.texts if one != said), said][-KEPT_TEXTS:]

    @staticmethod
    def _said(seen: Observation) -> str:
        """Return a short digest of all text on a screen; "" if none can be read."""
        bar = round(STATUS_BAR * seen.size[1])
        texts = sorted(reading.text for reading in seen.readings if reading.box.bottom > bar)
        return sha256("\n".join(texts).encode(errors="replace")).hexdigest()[:10] if texts else ""

    def _why(self, action: Action) -> str:
        back = self._back
        astray = next((app for app, times in back.strays.items() if times > STRAYS), "")
        if astray:
            return self._say("run.stray_stuck", app=_name(astray), count=back.strays[astray])
        if back.popup and back.popup_steps >= ASKED_AT:
            return self._say("run.popup_stuck", text=back.popup, count=back.popup_steps)
        if back.failed >= MOST_FAILED:
            return self._failing()
        if back.unmoved >= ASKED_AT:
            return self._say("run.unmoved_stuck", count=back.unmoved)
        if isinstance(action, Wait):
            return self._waited() or self._still() or self._in_circles()
        if back.same >= self._most_same(action):
            return self._say("run.same_stuck", count=back.same)
        return self._still() or self._in_circles()

    def _most_same(self, action: Action) -> int:
        if isinstance(action, Swipe) or (self._read and self._back.stale < TOLD_AT):
            return MOST_SWIPES
        return MOST_SAME if self._read else MOST_UNREAD

    def _waited(self) -> str:
        back = self._back
        if back.waited < WAITED_STILL and back.moving_waited < WAITED_MOVING and back.moving_waits < MOST_WAITS:
            return ""
        count, seconds = back.waits + back.moving_waits, round(back.waited + back.moving_waited)
        return self._say("run.loading_stuck", count=count, seconds=seconds)

    def _still(self) -> str:
        still = self._back.still
        return self._say("run.still_stuck", count=still) if still >= MOST_STILL else ""

    def _in_circles(self) -> str:
        """Return a message if a few actions alternate, or the same screens come again and again."""
        back = self._back
        for count, least in ((MOST_BY_TURNS, MOST_BY_TURNS), (MOST_SWIPES, 0)):
            newest = back.recent[-count:]
            # These two have limits of their own.
            counted = back.same >= count or {kind for kind, _, _ in newest} == {"wait"}
            if len(newest) == count and back.stale >= least and not counted and _different(newest) <= FEW:
                return self._say("run.circles_stuck", count=count)
        if self._read and back.stale >= MOST_STALE and _different(back.recent[-MOST_STALE:]) > 1:
            return self._say("run.circles_stuck", count=back.stale)
        return ""

    def _failing(self) -> str:
        return self._say("run.failing_stuck", count=self._back.failed, last=self._last_failure())

    def _last_failure(self) -> str:
        """Return the last problem in words for a person: messages of rules and of the parser are for the model."""
        last = next(reversed(self._session.steps), None)
        if last is None:
            return ""
        if last.verdicts:
            return self._say("run.last_ruled", rule=rule_words(self._session.lang, last.verdicts[-1].policy))
        return self._say("run.last_unread") if last.unread else last.result

    def _refused_end(self) -> str:
        """Return a message if the end was refused so often that it is not a way out."""
        newest = self._session.steps[-TOLD_AT:]
        ends = [step for step in newest if step.asked is not None and step.asked["kind"] == "finish" and not step.ok]
        return self._failing() if len(ends) == TOLD_AT and self._back.failed >= TOLD_AT else ""

    def _popup(self, seen: Observation) -> Popup | None:
        """Return a dialog that the task did not ask for, if the task may close it."""
        popup = popup_in(seen.window, seen.readings, seen.frame) if seen.chat is None else None
        if popup is None or popup.belongs_to(self._session.task):
            return None
        own = allowed_packages(self._session)
        return popup if popup.system or not own or seen.window.package in own else None

    def _of_popup(self, popup: Popup | None, seen: Observation) -> str:
        back = self._back
        text, said = (popup.text, self._said(seen)) if popup else ("", "")
        same = popup is not None and (text, said) == (back.popup, back.popup_texts)
        back.popup_steps = back.popup_steps + 1 if same else int(popup is not None)
        back.popup, back.popup_texts = text, said
        if popup is None or back.popup_steps not in (1, TOLD_AT):
            return ""
        what = self._say(f"popup.{popup.kind}")
        way = self._say("popup.by_person" if popup.by_person else "popup.by_button", button=popup.leave)
        return self._told("popup", "run.popup", what=what, text=text, way=way)

    def _of_app(self, seen: Observation, popup: Popup | None) -> str:
        """Report an app in front that the run has not opened and the task is not about."""
        back, front = self._back, seen.window.package
        if front is None or popup is not None or seen.window.kind is not WindowKind.APP or self._meant(front):
            return ""
        steps = self._session.steps
        if steps[-1].package == front:  # it was there before, and the model knows it
            return ""
        if self._last is not None and self._last["kind"] in TOUCHING:
            back.allowed.append(front)
            return self._told("opened", "run.opened", app=_name(front))
        back.strays[front] = back.strays.get(front, 0) + 1
        return self._told("app", "run.stray", app=_name(front))

    def _meant(self, front: str) -> bool:
        steps, back = self._session.steps, self._back
        if not steps or front in back.allowed or is_home(front):
            return True
        if front in self._task_packages():
            return True
        if front in back.strays:
            return False
        before = steps[-1].package or ""
        opened = self._last is not None and self._last["kind"] in OPENING
        return opened or is_home(before) or any(step.package == front for step in steps)

    def _task_packages(self) -> set[str]:
        session = self._session
        launched = [step.action["app"] for step in session.steps if step.action and step.action["kind"] == "launch"]
        packages = {package for app in (*session.apps, *launched) for package in packages_named(str(app))}
        return packages | allowed_packages(self._session)

    def _of_act(self, last: Mapping[str, Any] | None) -> str:
        back = self._back
        if last is None or not back.unmoved:
            return ""
        if back.unmoved >= TOLD_AT:
            return self._told("unmoved", "run.unmoved_many", count=back.unmoved)
        kind = "tap" if last["kind"] in {"double_tap", "long_press"} else str(last["kind"]).removesuffix("_name")
        return self._say("run.unchanged") + " " + self._told("unmoved", f"run.unmoved_{kind}")

    def _of_waiting(self) -> str:
        waits = self._back.waits
        return self._told("waits", "run.loading", count=waits) if waits >= TOLD_AT else ""

    def _of_same(self) -> str:
        """Report a repeated action if the screen moves but shows no new text, as with a banner or a video."""
        back, kind = self._back, self._back.last.get("kind")
        if back.same < TOLD_AT or back.same % TOLD_AT or back.stale < TOLD_AT or kind == "wait":
            return ""
        if kind == "swipe" and not self._read:  # a list of pictures may be long
            return ""
        return self._told("same", "run.same", count=back.same)

    @property
    def _last(self) -> Mapping[str, Any] | None:
        """The action of the last step."""
        steps = self._session.steps
        return steps[-1].action if steps else None

    def _told(self, kind: str, key: str, **values: object) -> str:
        told = self._back.told
        told[kind] = told.get(kind, 0) + 1
        return self._say(key, **values)

    def _say(self, key: str, **values: object) -> str:
        return say(self._session.lang, key, **values)


def _screen(action: Action, seen: Observation) -> str:
    """Return what a proposal was made on. A home screen is one whatever it shows, as its clock or weather changes.

    Where the proposal is to swipe, its pages are different screens.
    """
    front = seen.window.package or ""
    return front if is_home(front) and not isinstance(action, Swipe) else seen.frame.digest


def _same(last: Mapping[str, Any], action: Action) -> bool:
    """Tell whether this is the same action at about the same place."""
    if last.get("kind") != action.kind:
        return False
    place, before = first_touch(action), last.get("element") or last.get("start")
    if place is not None and before is not None:
        return near(place, before) or isinstance(action, Swipe)  # a list may be swiped anywhere
    if isinstance(action, Back | Home | Launch | PressKey | Wait):
        return last == action.model_dump(mode="json")
    return False


def _different(proposals: Sequence[tuple[str, int, int]]) -> int:
    """Count the different actions; the same kind at about the same place counts once."""
    found: list[tuple[str, int, int]] = []
    for kind, x, y in proposals:
        if not any(k == kind and max(abs(x - left), abs(y - top)) <= SAME_TARGET for k, left, top in found):
            found.append((kind, x, y))
    return len(found)


def _name(package: str) -> str:
    known = profile_of_package(package)
    return known.name if known else package


LONGEST_CYCLE = 4  # screens that repeat in turn
SEARCH_FOOT = 0.12  # of the height: a search field is above, its results are below


class RepeatWatch:
    """A watch on one run for repeated proposals on the same screens. Its trail is stored in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._recovery = Recovery(session)
        self._digest = ""

    def look(self, seen: Observation, observation: str) -> str:
        """Return the observation for the next prompt, with what the screen shows about the last action."""
        session = self._session
        unchanged = bool(self._digest) and seen.frame.digest == self._digest
        self._digest = seen.frame.digest
        hint = self._recovery.look(seen, unchanged=unchanged)
        if session.repeats >= TOLD_AT:
            hint = hint or say(session.lang, "run.repeated", count=session.repeats)
        return " ".join(filter(None, (observation, hint)))

    def count(self, action: Action | None, seen: Observation) -> ActResult | None:
        """Count the proposal. Return a question to a person if it, or a short cycle of proposals, keeps repeating."""
        session = self._session
        if action is None:
            return None
        given_up = (None if isinstance(action, EXITS) else self._unread()) or self._given_up(action, seen)
        if given_up is not None:
            return given_up
        if not isinstance(action, Wait):  # waits are counted in seconds
            signature = f"{_screen(action, seen)}:{action.model_dump_json()}"
            trail = [*session.trail, sha256(signature.encode()).hexdigest()[:12]][-LONGEST_CYCLE * ASKED_AT :]
            session.trail = trail
            session.repeats = max(rounds(trail, length) for length in range(1, LONGEST_CYCLE + 1))
        why = self._recovery.proposed(action)
        if not why and (session.repeats < ASKED_AT or isinstance(action, EXITS)):
            return None
        text = why or say(session.lang, "run.stuck", count=session.repeats)
        self._recovery.forget()
        session.trail, session.repeats = [], 0
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def count_unread(self, seen: Observation, judgement: Judgement) -> None:
        """Count refusals on pages that could not be read, until a page can be."""
        if seen.unread_below is None:
            self._session.unread_refusals = 0
        elif any(verdict.policy == UnreadPage.name for verdict in judgement.verdicts):
            self._session.unread_refusals += 1

    def _unread(self) -> ActResult | None:
        session = self._session
        if session.unread_refusals < TOLD_AT:
            return None
        text = say(session.lang, "run.unread_stuck", count=session.unread_refusals)
        session.unread_refusals, session.trail, session.repeats = 0, [], 0
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def _given_up(self, action: Action, seen: Observation) -> ActResult | None:
        """Ask a person if the model keeps wanting to end before the knowledge base was asked; it may have a reason.

        The person is asked at once if the screen shows that the contact cannot be found.
        """
        session = self._session
        refused = isinstance(action, Finish) and session.gate.enabled and not session.gate.knowledge_done
        if not isinstance(action, Wait):  # a wait in between does not count as a change of mind
            session.refused_finishes = session.refused_finishes + 1 if refused else 0
        if not refused or not isinstance(action, Finish):
            return None
        missing = self._searched_in_vain(seen)
        if not missing and session.refused_finishes < TOLD_AT:
            return None
        session.refused_finishes, session.trail, session.repeats = 0, [], 0
        text = say(session.lang, "run.wants_to_end", message=action.message)
        if missing:
            text = say(session.lang, "run.not_found", contact=session.gate.contact)
            if alike := session.gate.alike:
                text = sentences([text, say(session.lang, "run.names_alike", names=Listed(alike))], session.lang)
        if session.cluster is None and session.gate.contact:  # the contact's chat was never read
            text = sentences([text, say(session.lang, "run.no_chat", contact=session.gate.contact)], session.lang)
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def _searched_in_vain(self, seen: Observation) -> bool:
        """Tell whether the contact's whole name was searched for and no result has that name.

        If nothing on the page was read, this is unknown and False.
        """
        contact, foot = self._session.gate.contact, SEARCH_FOOT * seen.frame.image.height
        done = (step.action for step in self._session.steps if step.ok and step.action)
        if not any(act["kind"] in {"type", "type_name"} and same_name(act["text"], contact) for act in done):
            return False
        like = [one for one in seen.readings if likeness(one.text, contact) is not Likeness.OTHER]
        return bool(like) and all(one.box.center.y < foot for one in like)


def rounds(trail: list[str], length: int) -> int:
    """Return how many times in a row the last ``length`` entries are at the end of ``trail``."""
    last, count = trail[-length:], 0
    while len(last) == length and trail[len(trail) - length * (count + 1) : len(trail) - length * count] == last:
        count += 1
        if length * (count + 1) > len(trail):
            break
    return count
