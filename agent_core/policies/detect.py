"""Read from a task's text whether customers are to be answered, in which app, and who: by code, not by a model.

A task is read clause by clause. A clause that orders an answer (``QQ回复11``, ``reply to 11 on QQ``) makes it a reply
task; one that asks about answers (``看看张三有没有回复``) or forbids them does not. What remains of the clause without
the app, the verb and the words around a name says who: one contact, several, or nobody, which means everybody who has
written something new. The policies of a task follow from this, unless the schedule or the command sets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent_core.apps.names import without_profile
from agent_core.apps.profile import AppProfile, profiles
from agent_core.errors import InputRejected
from agent_core.policies.base import Policy
from agent_core.policies.customer_reply import CustomerReply, NoBuiltInAI, NothingNew, ProvenancePolicy, UnreadPage
from agent_core.policies.right_chat import RightChat
from agent_core.policies.safety import AllowedApps, AskBeforeRisk, DeliveryAlone, FreshFrame, NothingRisky, OneApp

LONGEST_NAME = 30  # characters without quotes; anything longer is a description


def _any(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


_QUOTED = re.compile(r"[“\"「『]([^“”\"「」『』]+)[”\"」』]")
_CLAUSES = re.compile(
    r"[，,。；;！!？?\n]+|然后|接着|并且?(?=[回答])|\b(?:and\s+)?then\b|\band\b(?=\s+(?:auto|repl|respond|answer|write|text|get\s))",
    re.IGNORECASE,
)
# These begin another order and are not part of a name.
_BESIDES = re.compile(r"并(?=[说回发把且告截看])|再(?=[说回发把告])|\s并")
_ROLE = _any("联系人", "客户", "顾客", "买家", "客人", "用户", "好友", "网友")
_NEWS = _any(
    "聊天窗口",
    "聊天框",
    "窗口",
    "消息",
    "信息",
    "问题",
    "咨询",
    "提问",
    "留言",
    "私信",
    "聊天",
    "会话",
    "对话",
    "询问",
    "疑问",
    "来信",
)
_WHICH = _any("最新", "最近", "最后", "未读", "没读", "新", "所有", "全部", "今天", "刚才", "刚刚", "发来", "发")

# Verbs that order an answer. A lone 回 is one unless another word begins with it (回家, 回忆, 回车 …).
_VERB = re.compile(
    r"智能客服(?:自动)?(?:回复)?|客服(?:自动)?回复|GET_KNOWLEDGE_DATA|自动回复"
    r"|(?<!的)(?:回复|答复|回答|应答|解答)(?:一?下)?"
    r"|回(?![复答头到来去家车忆首收退执访合族民锅乡归应旋响声扣馈款路国避形顾绕味滚放溯调滞])(?:一?下|一?[条个])?(?:消息|信息|话|微信)?"
    r"|\b(?:(?:auto[- ]?)?reply|respond|write\s+back|text\s+back|get\s+back|answer)\b",
    re.IGNORECASE,
)
_CONTACT = re.compile(r"(?:处理|服务|接待)?(?:联系人|\bcontact\b)(?=\s*\S)", re.IGNORECASE)

# Looks like an order, but asks about answers or forbids them.
_ASKS = re.compile(
    r"有没有|有无|是否|是不是|看看|查看|看一?下|瞧瞧|检查|查一?下|统计|截图|截屏|搜索|搜一下|导出|等待?|监控|读一?下|读取"
    r"|谁|[没未]有?(?=\0)|已经?(?=\0)|(?:怎么|如何|怎样)(?=\0)"
    r"|\b(?:did|does|has|have|had|whether|check|see|look|find\s+out|what|when|who|why|how|wait|any|list|show|count)\b",
    re.IGNORECASE,
)  # before the verb; \0 stands for the verb
_ASKS_AFTER = re.compile(r"^(?:了(?:没|吗|什么|谁|几|多少|哪)|过(?:没|吗|什么)?|没|吗|什么)")
_FORBIDS = re.compile(
    r"(?:不|别|勿|禁止|无需)[要能可得准再去用许需必]*(?:自动)?(?:回|答|应)"
    r"|(?:\bdo\s+not|\bdon['’]t|\bnever|\bwithout|\bno)\s+(?:repl|respond|answer|writ|text|get)",
    re.IGNORECASE,
)
_IF_SO = re.compile(
    r"^(?:如果|要是|若)?有(?:的话)?(?:未读|新)?(?:消息|信息|问题|咨询|留言)?(?:的话)?就?|^\s*if\s+(?:so|there\s+(?:is|are)\s+any)\b",
    re.IGNORECASE,
)

# Words around a name.
_FRAME = re.compile(
    r"(?:打开|启动|进入|登录|使用|用|通过|在|去|到|从)?\s*(?:手机|电脑)?\0+\s*(?:上面|里面|应用|软件|上|里|中|内)?的?\s*[:：\-]?"
    r"|(?:\b(?:open|launch|start|go\s+to|use|using|via|through|on|in|at|with|by|inside)\s+)?\0+(?:\s+app\b)?\s*:?",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"[（(]\s*[)）]")
_POLITE = re.compile(
    r"^(?:请你?|麻烦你?|劳烦|帮我|帮忙|帮|替我|给我|我要|我想|需要|你|去|来|\s|please\b|can\s+you\b|could\s+you\b)+",
    re.IGNORECASE,
)
_LEADING = re.compile(
    rf"^(?:一下|下(?=\s)|给|到|:|：|-|\s|来自|名叫|名为|昵称[为是]?|处理"
    r"|\b(?:to|latest|newest|new|unread|the|my|our|contact|customer|client|buyer|friend|user|named|called|messages?|questions?|of|from|for|by)\b)*"
    rf"(?:{_ROLE}[:：\s]*)?",  # only once, because a name may begin with another of these words
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf"关于.*$|(?:(?:的|{_WHICH})*{_NEWS}|的|那边|这边|一下|吧|啊|呀|哦|哈|呢|吗|嘛|呗|了|谢谢|多谢|\s)+$|['’]s?\s.*$|['’]s?$"
    r"|\s+(?:about|saying|that|with|using|via|asap|now|please|latest|newest|right)\b.*$|\s+(?:messages?|questions?)$",
    re.IGNORECASE,
)
_BEFORE_VERB = (
    re.compile(rf"({_ROLE}\s*[:：]?\s*.+)$"),
    re.compile(r"(?:给|向|对|把|将|跟|为)(.+)$"),
    re.compile(rf"^(.+?)的?(?:{_WHICH}|的)*{_NEWS}$"),
)
_EVERYBODY = re.compile(
    rf"(?:{_ROLE}|{_NEWS}|{_WHICH}|每个|每一个|每位|各位|各个|大家|人|们|他们|她们|的|有|来|了|还|没|未|回复?|多个|一?下|吧|把|将|给|红点|一遍|逐个|逐一|\s"
    r"|\b(?:to|all|every|each|any|of|the|my|our|new|newest|latest|unread|open|waiting|pending|everyone|everybody|whoever|anyone|customers?|clients?"
    r"|contacts?|buyers?|people|friends?|messages?|questions?|chats?|them|those|who|has|have|wrote|written|please|from|in)\b|['’]s?)*",
    re.IGNORECASE,
)
_AND = re.compile(r"\s*(?:、|/|(?<=\d)\s+(?=\d)|以及|还有|\band\b|&|＆)\s*", re.IGNORECASE)
_AND_IN_NAMES = re.compile(r"\s*[和跟与及]\s*")  # each may also be part of a name: 李和平
# A comma between names: a short word follows that is neither a remark (谢谢, 快点) nor an order.
_LIST = re.compile(
    r"(?<=[0-9A-Za-z\x01\u3400-\u9fff])\s*[,，;；]\s*"
    rf"(?={_ROLE}?(?:[0-9A-Za-z\x01]{{1,12}}|(?:(?![谢快请急别不要再看就好吧了们他她它我你])[\u3400-\u9fff]){{2,3}})\s*(?:$|[,，;；、和]|and\b))",
    re.IGNORECASE,
)
_DESCRIBES = re.compile(
    r"[那这哪某]个|昨天|前天|上次|第[一二三四五六七八九十\d]+个|[上下最][一后]个|.的" + _any("人", "那位", _ROLE)
)
# The way to a chat before the order (找到张三，回复), and words along it that are not names.
_LED_TO = re.compile(
    rf"(?:找到|进入|点开|点击|点进|打开|搜索|选择|选中|查看|看看|看一?下|{_ROLE})(?:和|与|跟|{_ROLE}|\s|[:：])*(?!{_ROLE}|{_NEWS}|{_WHICH}|[有没未])"
    rf"([^，,\s的]{{1,{LONGEST_NAME}}})"
    r"|\b(?:find|open|check|select|search\s+for|go\s+to|contact)\s+(?:the\s+)?(?:chat\s+(?:with|of)\s+)?(?:contact\s+|customer\s+)?"
    r"(?!for\b|the\b|new\b|unread\b|whether\b|if\b|my\b|all\b|messages?\b|and\b|it\b|chats?\b|contact\b)([^，,\s'’]+)",
    re.IGNORECASE,
)
_ON_THE_WAY = re.compile(
    rf"{_ROLE}|{_NEWS}|{_WHICH}|有没有|是否|如果|要是|能不能|能否|可不可以|可以|是不是|有|没|未|打开|进入|启动|登录|找到|点开|点击|看看|查看|看一?下|检查|查一?下"
    r"|读取|读|请你?|麻烦你?|劳烦|帮我|帮忙|帮|替我|给我|我要|我想|需要|逐个|逐一|一遍|一下|先|就|的话|的|在|用|去|把|将|给|对|向|所有人?|全部|每个|大家|人|了|吗|都|列表|页面|首页|应用|软件|红点"
    r"|\b(?:please|can|could|would|you|help|me|go|to|open|check|see|look|at|for|if|so|there|is|are|any|new|unread|latest|the|my|all|a"
    r"|messages?|questions?|chats?|list|app|and|it|them|whether|i|want|customers?|contacts?)\b|[，,:：\-\s]",
    re.IGNORECASE,
)
# For tasks without an app: verbs that are not only used of customers, and words for another place or no customer.
_ANSWERS_ANYTHING = re.compile(r"回|回答|解答|应答|answer", re.IGNORECASE)
# Such a verb means a customer after all if one of these follows: a number as a name, not as a count.
_A_NUMBER = re.compile(r"\s*\d+(?!\s*(?:\d|[道个条题页封通]|[a-z]+s\b))", re.IGNORECASE)
_NO_CUSTOMER = re.compile(
    r"邮件|邮箱|短信|评论|帖子?|弹幕|动态|电话|来电|通知|公告|工单|微博|朋友圈|问卷|^\s*[我你]|在.|上的|里的"
    r"|\b(?:e-?mails?|mails?|sms|texts?|comments?|posts?|tweets?|threads?|reviews?|tickets?|calls?|phone|notifications?"
    r"|invitations?|surveys?|me|us|with|in|on|at|via|by|using|through|from)\b",
    re.IGNORECASE,
)
# Where an answer is ordered, beside the verb, if that may be the name of an app: not 收到后回复1.
_OPENS = re.compile(r"\s*(?:打开|启动|进入|open\b|launch\b|start\b)", re.IGNORECASE)
_PLACE_BEFORE = re.compile(
    r"^\s*(?:打开|启动|进入|使用|用|通过|在|去|到|(?:open|launch|start|use)\b)?\s*([A-Za-z\u3400-\u9fff][\w·]{1,11}?)\s*(?:应用|软件|\bapp\b)?"
    r"(?:上面|里面|上|里|中|内)?[\s:：]*$",
    re.IGNORECASE,
)
_PLACE_AFTER = re.compile(
    r"\b(?:on|via|using|through|in(?=\s+(?-i:[A-Z])))\s+([A-Za-z][\w.]{1,19})\s*$|\s在\s*([A-Za-z\u3400-\u9fff][\w·]{1,11}?)[上里中]?\s*$",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(
    r"[后时前再就先都也并我你您他她它咱这那]|收到|看到|看看|查看|找到|点[击开进]|选择|选中|搜索|如果|马上|立即|立刻|尽快|直接|统一|继续|主动|礼貌|批量|群|弹窗|网页|浏览器|页面|手机|桌面"
    r"|\b(?:time|behalf|phone|computer|screen|page|web|and|then|please|quickly|politely|always|also|just|now)\b",
    re.IGNORECASE,
)
_A_CUSTOMER = re.compile(rf"\s*(?:{_ROLE}|(?:contact|customer|client|buyer)\b)\s*[:：]?\s*\w", re.IGNORECASE)
# People who are answered as a customer of theirs, not of ours; and words in quotes right after 回复, which are the
# answer.
_SERVES_US = re.compile(
    r"客服|商家|卖家|店家|骑手|快递|司机|\b(?:seller|shop|store|courier|driver|support|agent)s?\b", re.IGNORECASE
)
_A_TEXT = re.compile(r"\x01")
_NOBODY_TOLD = re.compile(r"^(?:我|你|您|他|她|它|咱|人家|对方|him|her|it|me|you|they)们?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReplyTask:
    """An order to answer customers.

    contacts: their names; () means everybody who has written something new.
    """

    profile: AppProfile
    contacts: tuple[str, ...] = ()

    @property
    def contact(self) -> str:
        """The name, if there is exactly one; "" otherwise."""
        return self.contacts[0] if len(self.contacts) == 1 else ""


def reply_task(task: str, known: Iterable[str] = (), *, certain: bool = False) -> ReplyTask | None:
    """Return the reply task that ``task`` describes, or None if it orders no answer or names no app with a profile.

    If several apps are named, the first one counts.

    known: names that are taken whole if they appear.
    certain: this is a reply task, whatever its words are.

    Raises InputRejected if it is a reply task whose contacts cannot be understood.
    """
    named = [(place, candidate) for candidate in profiles() if (place := _place(candidate, task)) is not None]
    if not named:
        return None
    app = min(named, key=lambda pair: pair[0])[1]
    quotes: list[str] = []
    text = _LIST.sub("、", _without_app(_without_quotes(task, quotes), app))
    ordered = False
    before = ""
    for clause in _CLAUSES.split(text):
        found = _ordered(clause)
        if found is not None:
            ordered = True
            if contacts := _names(found.after, quotes, tuple(known), before + found.before):
                return ReplyTask(app, contacts)
        before += f"{clause}，"
    if certain and not ordered:
        found_contact = _CONTACT.search(text)
        return ReplyTask(
            app, _names(f"联系人{text[found_contact.end() :]}", quotes, tuple(known)) if found_contact else ()
        )
    return ReplyTask(app) if ordered else None


def lacks_app(task: str) -> bool:
    """Tell whether ``task`` orders an answer to customers (``回复11``, ``reply to 11``) without naming an app.

    An order at the beginning of the task counts if it can mean customers. One that says "contact" counts anywhere.
    """
    clauses = _CLAUSES.split(_LIST.sub("、", _without_quotes(task, [])))
    orders = [found for clause in clauses if (found := _ordered(clause)) is not None]
    if not orders:
        return False
    return _CONTACT.search(task) is not None or (_ordered(clauses[0]) is not None and _can_be_customers(orders[0]))


def app_without_replies(task: str) -> str:
    """Return the app in which ``task`` orders an answer (``reply to 11 on WhatsApp``), if it has no profile.

    A word that stands where an app is named (``淘定回复联系人11``) counts as one if a contact or a number follows,
    which can only be a customer. Return "" if there is no such app.
    """
    text = _LIST.sub("、", _without_quotes(task, []))
    app = ""
    opened = ""
    for clause in _CLAUSES.split(text):
        named = without_profile(clause)
        app = named[0] if named else app
        order = _ordered(_FRAME.sub(" ", re.sub("|".join(map(re.escape, named)), "\0", clause)) if named else clause)
        if not app and (place := _unknown_place(order, opened)):
            return place
        opened = clause if _OPENS.match(clause) else opened
        if not app or order is None or not _stripped(order.after) or not _can_be_customers(order):
            continue
        if not _SERVES_US.search(order.after) and not _A_TEXT.match(order.after):
            return app
    return ""


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A clause that orders an answer by ``verb``. The words that say who are ``after``; ``before`` precedes them."""

    before: str
    after: str
    verb: str = ""


def _ordered(clause: str) -> _Ordered | None:
    clause = _IF_SO.sub("", _POLITE.sub("", clause.strip()))
    verb = _VERB.search(clause)
    before, after = (clause[: verb.start()], clause[verb.end() :]) if verb else (clause, "")
    if _FORBIDS.search(clause) or _ASKS.search(f"{before}\0") or _ASKS_AFTER.search(after):
        return None
    if verb is None:
        contact = _CONTACT.search(clause)
        return _Ordered(clause[: contact.start()], f"联系人{clause[contact.end() :]}") if contact else None
    if _stripped(after) and not _EVERYBODY.fullmatch(after):
        return _Ordered(before, after, verb[0])
    for pattern in _BEFORE_VERB:
        if (found := pattern.search(before.strip())) is not None:
            return _Ordered(before[: before.rindex(found[1])], found[1], verb[0])
    return _Ordered(before, after, verb[0])


def _can_be_customers(order: _Ordered) -> bool:
    """Tell whether ``order`` names customers or nobody. One can also answer e-mails, or a question in the task."""
    if order.before.strip(" 给把对向将跟为"):
        return False
    if _ANSWERS_ANYTHING.fullmatch(order.verb) and not _A_NUMBER.match(order.after):
        return False
    return bool(_EVERYBODY.fullmatch(order.after)) or not _NO_CUSTOMER.search(order.after)


def _unknown_place(order: _Ordered | None, opened: str) -> str:
    """Return the word by which ``order``, or else the clause ``opened`` before it, seems to name an app, if the order
    surely means a customer; "" otherwise.
    """
    if order is None or not order.verb:
        return ""
    whom = re.sub(r"^\s*(?:to|给)\b\s*|^给", "", order.after, flags=re.IGNORECASE)
    if not _A_CUSTOMER.match(whom) and not _A_NUMBER.match(whom):
        return ""
    found = _PLACE_BEFORE.match(order.before) or _PLACE_AFTER.search(whom) or _PLACE_BEFORE.match(opened)
    place = next(filter(None, found.groups()), "") if found else ""
    beside = f"{order.before}{whom}"
    if any(_place(profile, place) is not None for profile in profiles()):
        return ""
    return "" if _NO_PLACE.search(place) or _NO_CUSTOMER.search(place) or _SERVES_US.search(beside) else place


def _stripped(words: str) -> str:
    """Return ``words`` without the words that surround a name."""
    return _TRAILING.sub("", _LEADING.sub("", words)).strip(" \t:：-")


def _names(whom: str, quotes: Sequence[str], known: Sequence[str], before: str = "") -> tuple[str, ...]:
    """Return the names in ``whom``. If it has none, or a pronoun, return the name that ``before`` leads to."""
    whom = whom.strip()
    if _EVERYBODY.fullmatch(whom) or _NOBODY_TOLD.match(_stripped(whom)):
        if (led := _LED_TO.search(before)) is not None:
            whom = next(filter(None, led.groups()))
        elif (left := _ON_THE_WAY.sub("", before).strip()) or not _EVERYBODY.fullmatch(whom):
            raise _not_understood(left or whom)
        else:
            return ()
    first, *rest = _parts(_stripped(whom)) or [""]
    parts = [first, *(_LEADING.sub("", part) for part in rest)]
    whole = _known_at(_LEADING.sub("", whom), known)
    if whole is not None and len(whole) >= len(_BESIDES.split(first)[0].strip()):
        return (whole,)
    return tuple(dict.fromkeys(filter(None, (_name(part, quotes) for part in parts))))


def _not_understood(words: str) -> InputRejected:
    said = words.strip("，, ")[:LONGEST_NAME]
    return InputRejected(
        f"Whom to answer is not understood: {said!r}.",
        advice="Write the name as it stands in the app, for example: QQ回复11, QQ回复11、12, QQ回复所有未读.",
        key="reply_whom",
        name=said,
    )


def _known_at(words: str, known: Sequence[str]) -> str | None:
    """Return the longest ``known`` name that ``words`` begins with, or None."""
    return max((name for name in known if _begins_with(words, name)), key=len, default=None)


def _parts(words: str) -> list[str]:
    """Split a list of names. 和 separates names only if it cannot be part of one."""
    parts: list[str] = []
    for part in _AND.split(words):
        joined = _AND_IN_NAMES.split(part)
        single = any(len(one) < 2 and not re.fullmatch(r"[0-9A-Za-z\x01]+", one) for one in joined)
        parts += [part] if single else joined
    return [part for part in parts if part.strip()]


def _name(words: str, quotes: Sequence[str]) -> str:
    """Return the one name in ``words``. Raises InputRejected if they describe somebody or are a pronoun."""
    words = _TRAILING.sub("", _BESIDES.split(words)[0]).strip() or _TRAILING.sub("", words).strip()
    held = re.search(r"\x01(\d+)\x01", words)
    if held is not None:
        return quotes[int(held[1])].strip()
    if len(words) > LONGEST_NAME or _DESCRIBES.search(words) or _NOBODY_TOLD.match(words):
        raise _not_understood(words)
    return words


def _begins_with(text: str, name: str) -> bool:
    """Tell whether ``text`` begins with the whole ``name`` and not with a longer Latin word or number."""
    return text.startswith(name) and not re.match(r"[A-Za-z0-9]{2}", name[-1:] + text[len(name) : len(name) + 1])


def _without_quotes(task: str, quotes: list[str]) -> str:
    """Return ``task`` with a mark in place of each quoted text, and append the texts to ``quotes``."""

    def held(match: re.Match[str]) -> str:
        quotes.append(match[1])
        return f"\x01{len(quotes) - 1}\x01"

    return _QUOTED.sub(held, task)


def _without_app(task: str, app: AppProfile) -> str:
    """Return ``task`` without the app's names and the words that say "in this app"."""
    own = sorted((app.name, *app.aliases), key=len, reverse=True)
    anyone = "|".join(_name_pattern(name) for name in (*app.unlike, *own))  # QQ音乐 is another app, or a subject
    others = {name.lower() for name in app.unlike}
    task = re.sub(anyone, lambda found: found[0] if found[0].lower() in others else "\0", task, flags=re.IGNORECASE)
    return _EMPTY.sub("", _FRAME.sub(" ", task))


def _place(profile: AppProfile, task: str) -> int | None:
    """Return the place at which the app is first named, or None.

    A name inside another app's name (企业微信) does not count.
    """
    for other in profile.unlike:
        task = re.sub(_name_pattern(other), "\0" * len(other), task, flags=re.IGNORECASE)
    found = (re.search(_name_pattern(name), task, re.IGNORECASE) for name in (profile.name, *profile.aliases))
    return min((match.start() for match in found if match), default=None)


def _name_pattern(name: str) -> str:
    # A Latin name must not be part of a longer Latin word; Chinese characters around it do not matter.
    return rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" if name.isascii() else re.escape(name)


class PolicyName(StrEnum):
    """The policies that a task can have."""

    REPLY = "reply"  # a customer is answered: the knowledge gate and everything that belongs to it
    CAREFUL = "careful"  # any other task: a person is asked before anything that pays, deletes, calls …
    OPEN = "open"  # nothing is asked; only apps that are not named are blocked


# The table comes first because it turns a proposal into what the others then judge.
REPLY_POLICIES: tuple[Policy, ...] = (
    CustomerReply(),
    NoBuiltInAI(),
    OneApp(),
    UnreadPage(),
    NothingRisky(),
    DeliveryAlone(),
    ProvenancePolicy(),
    RightChat(),
    FreshFrame(),
    NothingNew(),
)

_POLICIES: dict[PolicyName, tuple[Policy, ...]] = {
    PolicyName.REPLY: REPLY_POLICIES,
    PolicyName.CAREFUL: (AllowedApps(), AskBeforeRisk(), FreshFrame()),
    PolicyName.OPEN: (AllowedApps(), FreshFrame()),
}


def policies_of(name: PolicyName) -> Sequence[Policy]:
    """Return the policies with this name in the order in which they review."""
    return _POLICIES[name]
