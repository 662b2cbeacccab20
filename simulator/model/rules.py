"""The rules by which the demo model answers: one view, one call. It keeps nothing between requests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agent_core.actions import types
from agent_core.actions.parse import parse_reply
from agent_core.actions.write import to_autoglm
from agent_core.errors import ActionParseError, InputRejected
from agent_core.perception.compare import fold
from agent_core.policies.detect import ReplyTask, reply_task
from agent_core.reply.asked import asks, query_of, sentences
from agent_core.texts import Lang, load_texts
from simulator.model.reading import Seen, SeenBubble, View, bubbles, without_keyboard

_TITLE = (35, 110)  # heights of a page's title, in thousandths
_PILL = re.compile(r"^\d{1,2}\+? +")  # the count of unread messages before a title, read as one line with it
_INPUT_BELOW = 350
_BAR_TOP = 915  # messages end above this height on any phone; anything lower belongs to the bar
_BAR = re.compile(r"^(?:发送|Send|按住\s*说话|Hold to Talk)$", re.IGNORECASE)
_TABS_BELOW = 900
_TABS = frozenset({"消息", "频道", "联系人", "动态", "微信", "通讯录", "发现", "我"})
_APPS = {  # by the key of the profile: how it is launched, and how a request names it
    "qq": ("QQ", frozenset({"qq", "手机qq", "腾讯qq", "com.tencent.mobileqq"})),
    "wechat": ("微信", frozenset({"微信", "wechat", "weixin", "com.tencent.mm"})),
}
_DISMISS = re.compile(
    r"^(?:关闭|关闭广告|我知道了|知道了|稍后再说|以后再说|下次再说|暂不更新|暂不|忽略|不感兴趣|跳过\s*\d*\s*s?|[×✕xX])$"
)
_RELOAD = re.compile(r"^(?:重新加载|点击重试|重试|刷新)$")
_SEARCH = re.compile(r"^\W*[QOao0]?\W*(?:搜索|Search)$", re.IGNORECASE)  # with OCR's readings of the magnifier
_WHEN = re.compile(r"^(?:\d{1,2}:\d{2}|昨天|前天|(?:星期|周).|\d+月\d+日|\d+[/-]\d+\S*)$")  # in a list of chats
_SENT = re.compile(r"已经?(?:发送给|发出)|答案已经发送|has been sent|was sent|already been sent", re.IGNORECASE)
_SKIPPED = re.compile(r"已由(?:人工|程序“[^”]*”)跳过|skipped by", re.IGNORECASE)
_MORE = re.compile(r"对方还问了[^“]*“(.+?)”。|They also ask[^']*'(.+?)'\.", re.DOTALL | re.IGNORECASE)
_WRONG_CHAT = re.compile(r"不是联系人|not (?:the )?(?:contact|chat)", re.IGNORECASE)
_NO_EFFECT = re.compile(r"没有变化|没有效果|unchanged|no effect", re.IGNORECASE)
_OPEN = re.compile(
    r"(?:打开|启动|进入|\bopen\b|\blaunch\b)\s*[“\"'「]?([\w·]+?)(?=[”\"'」\s,，。.;；!！]|然后|并|应用|看看|$)", re.I
)
_NOT_OPENED = re.compile(r"没有找到|没有打开|失败|not found|was not opened|failed", re.IGNORECASE)
_LOOK = re.compile(r"截图|截屏|看看|看一下|看下|描述|读|什么|screenshot|look|describe|read|what", re.IGNORECASE)
_ABOUT_CHATS = re.compile(  # what somebody has written is not what stands on this screen
    r"有没有.{0,6}(?:回复|回信|消息|人找)|回复了?(?:没|吗|什么)|谁.{0,4}回复|说了什么"
    r"|\b(?:repl(?:y|ied|ies)|answered|wrote|written|messages?)\b",
    re.IGNORECASE,
)
_HOME = re.compile(r"桌面|主屏幕|home screen", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the model: its thinking and one call."""

    thinking: str
    call: str

    @property
    def text(self) -> str:
        return f"<think>{self.thinking}</think><answer>{self.call}</answer>"


_lang: ContextVar[Lang] = ContextVar("lang", default="zh")  # of the request that is answered


def say(key: str, **values: str) -> str:
    return load_texts("simulator.model", _lang.get())[f"sayings.{key}"].format(**values)


_ACTIONS: dict[str, type[Any]] = {
    "Launch": types.Launch,
    "Tap": types.Tap,
    "Type_Name": types.TypeName,
    "Swipe": types.Swipe,
    "Back": types.Back,
    "Home": types.Home,
    "Wait": types.Wait,
    "Take_over": types.TakeOver,
    "Interact": types.Interact,
    "GET_KNOWLEDGE_DATA": types.GetKnowledgeData,
}


def do(action: str, **arguments: object) -> str:
    return to_autoglm(_ACTIONS[action](**arguments))


def finish(message: str) -> str:
    return to_autoglm(types.Finish(message=message))


def abort(message: str) -> str:
    return to_autoglm(types.Finish(message=message, success=False))


def blind(lang: Lang) -> Move:
    """Return the move for a request with neither elements nor a picture that can be read."""
    _lang.set(lang)
    return Move(say("blind"), do("Interact", question=say("blind_question")))


def decide(view: View) -> Move:
    """Return the next move. ``view.seen`` must not be None."""
    _lang.set(view.lang)
    seen = without_keyboard(view.seen or ())
    reply = _reply(view.task)
    if reply is not None:
        move = _Reply(view, seen, reply.contact, *_APPS[reply.profile.key]).move()
        return _other_way(view, move)
    return _plain(view, seen)


def _reply(task: str) -> ReplyTask | None:
    with suppress(InputRejected):
        return reply_task(task)
    return None


def _query_in(call: str) -> str:
    try:
        action = parse_reply(f"<answer>{call}</answer>").action
    except ActionParseError:
        return ""
    return action.query if isinstance(action, types.GetKnowledgeData) else ""


def _repeated(view: View, call: str) -> int:
    """Count how often this very call is repeated at the end of the history."""
    count = 0
    for past in reversed(view.calls):
        if past != call:
            break
        count += 1
    return count


def _other_way(view: View, move: Move) -> Move:
    """Change a move that had no effect before: shift it, then go back."""
    times = _repeated(view, move.call)
    if not times or not _NO_EFFECT.search(view.observation) or "Tap" not in move.call:
        return move
    shifted = re.sub(r"\[(\d+),(\d+)\]", lambda m: f"[{m[1]},{min(1000, int(m[2]) + 6)}]", move.call)
    return Move(say("stuck"), shifted if times == 1 else do("Back"))


class _Reply:
    """A reply task's next move."""

    def __init__(self, view: View, seen: Sequence[Seen], contact: str, app: str, names: frozenset[str]) -> None:
        self.view = view
        self.seen = seen
        self.app = app
        self.names = names
        self.contact = contact

    def move(self) -> Move:
        if self.view.current_app.strip().lower() not in self.names:
            return self._launch()
        return self._hindrance() or self._chat() or self._search_page() or self._list()

    def _launch(self) -> Move:
        call = do("Launch", app=self.app)
        if _repeated(self.view, call) >= 3:
            return Move(say("stuck"), finish(say("not_opened_message", app=self.app)))
        return Move(say("launch", now=_front(self.view), app=self.app), call)

    def _hindrance(self) -> Move | None:
        for item in self.seen:
            central = item.role == "button" or 300 < item.x < 700 or item.y < 200
            if _DISMISS.match(item.text) and central and not self._is_bubble_lane(item):
                return Move(say("popup", text=item.text), _tap(item))
        words = {item.text for item in self.seen}
        if "登录" in words and any("密码" in word or "失效" in word for word in words):
            return Move(say("login"), do("Take_over", message=say("login_message")))
        for item in self.seen:
            if _RELOAD.match(item.text) and (item.role == "button" or 300 < item.x < 700):
                return Move(say("reload", text=item.text), _tap(item))
        return None

    def _is_bubble_lane(self, item: Seen) -> bool:
        """Tell whether an item may be a bubble.

        On the contact's own page a bubble may say 关闭, too; a dialog's button is in the middle or has a twin.
        """
        twin = any(o is not item and abs(o.y - item.y) < 8 and 400 < o.x < 880 for o in self.seen)
        middle = 400 < item.x < 600 or item.y < _TITLE[1]
        return self._title() == self.contact and item.role != "button" and not middle and not twin

    def _title(self) -> str:
        texts = [
            item.text
            for item in self.seen
            if _TITLE[0] < item.y < _TITLE[1] and item.role not in {"image", "input", "button"} and item.x < 850
        ]
        if self.contact in texts or any(_PILL.sub("", text) == self.contact for text in texts):
            return self.contact
        return texts[0] if texts else ""

    def _messages_end(self) -> int | None:
        """Return the y at which the messages of a chat end; None on other pages.

        An empty input has no readable text, and Send may come after typing only. Then a page with the contact's name
        above is the chat, if it has neither the tabs of the list nor a search.
        """
        rows = [i.y for i in self.seen if i.y > _INPUT_BELOW and (i.role == "input" or _BAR.match(i.text))]
        if rows:
            return min(rows) - 15
        tabs = sum(1 for item in self.seen if item.y > _TABS_BELOW and item.text in _TABS)
        searches = any(item.y < 250 and _SEARCH.match(item.text) for item in self.seen)
        other = tabs >= 2 or searches or self._cancel()
        return _BAR_TOP if not other and self._title() == self.contact else None

    def _cancel(self) -> bool:
        """Tell whether this page has a search's cancel button."""
        return any(item.text in {"取消", "Cancel"} and item.y < _TITLE[1] for item in self.seen)

    def _chat(self) -> Move | None:
        end = self._messages_end()
        if end is None:
            return None
        title = self._title()
        if title != self.contact:
            return Move(say("wrong_chat", title=title, contact=self.contact), do("Back"))
        if _WRONG_CHAT.search(self.view.observation):
            return Move(say("wrong_chat", title=title, contact=self.contact), do("Back"))
        return self._answer(bubbles(self.seen, top=_TITLE[1] - 12, bottom=end))

    def _answer(self, messages: Sequence[SeenBubble]) -> Move:
        asked = self._asked()
        question = _newest_question(messages)
        if fold(question) in map(fold, asked) and _SENT.search(self.view.observation):
            question = ""  # the page may not show the answer yet
        if more := _MORE.search(self.view.observation):
            words = more.group(1) or more.group(2)
            question = query_of(words) or words.strip()
        if question:
            return Move(say("ask", question=question), do("GET_KNOWLEDGE_DATA", query=question))
        if any("GET_KNOWLEDGE_DATA" in call for call in self.view.calls):
            blocked = re.search(r"不能 finish|finish 不会|blocked", self.view.observation)
            known = {_bare(query) for query in asked}
            if blocked and (open_ones := [q for q in _answered_last(messages) if _bare(q) not in known]):
                return Move(say("ask", question=open_ones[0]), do("GET_KNOWLEDGE_DATA", query=open_ones[0]))
            return Move(say("sent"), finish(say("sent_message", contact=self.contact)))
        nothing = say("nothing_new", contact=self.contact)
        return Move(nothing, finish(nothing))

    def _asked(self) -> set[str]:
        return {query for call in self.view.calls if (query := _query_in(call))}

    def _named(self) -> Seen | None:
        """Return the row whose whole name is the contact's: no preview, no unread mark, no title, not twice the wrong
        one.
        """
        rows = [i for i in self.seen if i.y > _TITLE[1] and 150 < i.x < 700 and i.role not in {"input", "image"}]
        times = [item.y for item in self.seen if item.x > 800 and _WHEN.match(item.text)]
        for item in rows:
            if item.text != self.contact or self._left_again(_tap(item)) >= 2:
                continue
            # A preview is close below another text; in a list with times, they are beside the names.
            below = any(0 < item.y - other.y < 35 and other.text != self.contact for other in rows)
            if not below and (not times or any(abs(item.y - y) < 10 for y in times)):
                return item
        return None

    def _left_again(self, call: str) -> int:
        """Count how often this call led to a page that was left again, at once or after one question there."""
        calls, back = self.view.calls, do("Back")
        return sum(1 for n, one in enumerate(calls) if one == call and back in calls[n + 1 : n + 3])

    def _search_page(self) -> Move | None:
        field = next((item for item in self.seen if item.role == "input" and item.y < 150), None)
        if field is None and not self._cancel():
            return None
        found = self._named()
        if found is not None:
            return Move(say("row", contact=self.contact), _tap(found))
        typed = do("Type_Name", text=self.contact)
        filled = any(i.text == self.contact and i.y < _TITLE[1] for i in self.seen)
        if not filled and self.view.calls.count(typed) < 3:
            if _repeated(self.view, typed) and field is not None:
                return Move(say("stuck"), _tap(field))
            return Move(say("type_name", contact=self.contact), typed)
        if not _repeated(self.view, wait := do("Wait", duration=1)):
            return Move(say("loading"), wait)
        missing = say("not_found", contact=self.contact)
        return Move(missing, finish(missing))

    def _list(self) -> Move:
        if _SKIPPED.search(self.view.observation) or (not self.contact and _SENT.search(self.view.observation)):
            return Move(say("sent"), finish(self.view.observation))
        found = self._named()
        if found is not None:
            return Move(say("row", contact=self.contact), _tap(found))
        if len([item for item in self.seen if item.y > _TITLE[0]]) < 2:
            wait = do("Wait", duration=2)
            return (
                Move(say("irrelevant"), do("Back")) if _repeated(self.view, wait) >= 3 else Move(say("loading"), wait)
            )
        entry = next((item for item in self.seen if _SEARCH.match(item.text) and item.y < 250), None)
        if entry is None and self.view.calls.count(do("Back")) >= 5:
            missing = say("not_found", contact=self.contact)
            return Move(missing, finish(missing))
        if entry is None:
            return Move(say("irrelevant"), do("Back"))
        swipe = do("Swipe", start=(500, 750), end=(500, 300))
        if swipe not in self.view.calls:
            return Move(say("swipe", contact=self.contact), swipe)
        return Move(say("search", contact=self.contact), _tap(entry))


def _newest_question(messages: Sequence[SeenBubble]) -> str:
    """Return the query for the other side's messages since our last bubble: the first of them that asks.

    If none asks anything, return the newest words as they are: the knowledge base or a person decides about them.
    """
    cluster: list[str] = []
    for message in reversed(messages):
        if message.mine:
            break
        cluster.insert(0, message.text)
    asking = [text for text in cluster if asks(text)]
    for text in [*asking, *cluster]:
        if query := query_of(text):
            return query
    return next((text.strip() for text in reversed(cluster) if text.strip()), "")


def _answered_last(messages: Sequence[SeenBubble]) -> list[str]:
    """Return all questions in the messages above our newest ones, sentence by sentence: some may be open still."""
    asked: list[str] = []
    above = list(itertools.dropwhile(lambda message: message.mine, reversed(messages)))
    for message in itertools.takewhile(lambda message: not message.mine, above):
        asked[:0] = [sentence for sentence in sentences(message.text) if asks(sentence)]
    return asked


def _bare(query: str) -> str:
    return re.sub(r"\W+", "", query).casefold()


def _front(view: View) -> str:
    """Return the app in front by the name that people call it by."""
    return say("home_screen") if "launcher" in view.current_app else view.current_app


def _tap(item: Seen) -> str:
    return do("Tap", element=(item.x, item.y))


def _plain(view: View, seen: Sequence[Seen]) -> Move:
    if _ABOUT_CHATS.search(view.task):
        return Move(say("unknown"), abort(say("unknown_message", app=view.current_app)))
    opened = _OPEN.search(view.task)
    if opened:
        app = opened.group(1)
        if app.lower() != view.current_app.strip().lower() and not any("Launch" in call for call in view.calls):
            return Move(say("launch", now=_front(view), app=app), do("Launch", app=app))
        if _NOT_OPENED.search(view.observation):
            return Move(say("not_opened"), abort(say("not_opened_message", app=app)))
        if not _LOOK.search(view.task):
            return Move(say("opened", app=app), finish(say("opened_message", app=app)))
    if _LOOK.search(view.task):
        texts = "、".join(item.text for item in seen if item.text and item.role != "image")[:600]
        message = say("describe_message", app=view.current_app, texts=texts or say("nothing_seen"))
        return Move(say("describe"), finish(message))
    if _HOME.search(view.task):
        if do("Home") in view.calls:
            return Move(say("home"), finish(say("home_message")))
        return Move(say("home"), do("Home"))
    return Move(say("unknown"), abort(say("unknown_message", app=view.current_app)))
