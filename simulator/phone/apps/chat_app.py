"""A chat app: its pages and what moves between them. QQ and the WeChat-like app differ in looks and names."""

from __future__ import annotations

from datetime import timedelta

from simulator.phone.apps import lists
from simulator.phone.apps.assistant import ai_page
from simulator.phone.apps.bar import BarHandlers
from simulator.phone.apps.base import App, Host
from simulator.phone.apps.chat_page import ChatHandlers, chat_page
from simulator.phone.apps.looks import Look, Page
from simulator.phone.apps.messages import ChatView
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import Element, TextField
from simulator.phone.world import Chat, ContactKind, Kind, Message, MessageState, Side, World


class ChatApp(App):
    prefix = ""  # of the keys of its contacts
    ai_name = ""  # its built-in AI, if it has one

    def __init__(self, host: Host, world: World, look: Look) -> None:
        super().__init__(host)
        self.world = world
        self.look = look
        self.talking: dict[str, bool] = {}  # by contact, whether the input is the bar to hold and talk
        self.page: Page = "list"
        self.chat: Chat | None = None
        self.drafts: dict[str, TextField] = {}
        self.search = TextField(action_key="搜索")
        self.ai = TextField(action=self._ask_ai)
        self.ai_lines: list[tuple[Side, str]] = []
        self.view = ChatView()
        self.list_scroll = 0
        self._came_from: Page = "list"

    # ---- state ------------------------------------------------------------------------------------------------

    @property
    def enter_sends(self) -> bool:
        return self.host.enter_sends or self.look.enter_sends

    @property
    def sheet(self) -> Sheet:
        return Sheet(self.look, self.host.font_scale, self.world.account)

    def key(self, chat: Chat) -> str:
        return self.prefix + chat.name

    def draft(self, chat: Chat) -> TextField:
        if chat.name not in self.drafts:
            key = "发送" if self.enter_sends else "换行"
            self.drafts[chat.name] = TextField(
                multiline=True, action=self._send, enter_acts=self.enter_sends, action_key=key
            )
        return self.drafts[chat.name]

    def open_chat(self, chat: Chat) -> None:
        """Bring the chat to the front, read."""
        self.host.focus_on(None)
        if chat.kind is ContactKind.BAIT:
            self.open_ai()
            return
        self._came_from = "search" if self.page == "search" else "list"
        self.page, self.chat = "chat", chat
        self.view = ChatView()
        chat.unread = 0
        self.host.chat_opened(self.key(chat))

    def open_ai(self) -> None:
        self.host.focus_on(None)
        self.host.log("opened_ai")
        if self.page != "ai":
            self._came_from = self.page
        self.page = "ai"

    def show(self, page: Page) -> None:
        self.host.focus_on(None)
        self.page = page
        self.list_scroll = 0
        if page == "search":
            self.search.text = ""
            self.host.focus_on(self.search)

    def back(self) -> bool:
        self.host.focus_on(None)
        match self.page:
            case "chat":
                self.page, self.chat = self._came_from, None
                self._came_from = "list"
            case "ai":
                self.page = self._came_from
                self._came_from = "list"
            case "search":
                self.page = "list"
            case _:
                return False
        return True

    def reset(self) -> None:
        self.page, self.chat, self.list_scroll = "list", None, 0
        self.search.text = self.ai.text = ""

    def scroll(self, distance: int) -> None:
        if self.page == "chat":
            self.view.scroll += distance
        else:
            self.list_scroll = max(0, self.list_scroll - distance)

    def top_color(self) -> str:
        if self.page == "ai":
            return "#f4f2ff"
        plain = self.page == "search" or self.look.app == "qq"
        return self.look.colors.list_page if plain and self.page != "chat" else self.look.colors.header

    def current_activity(self) -> str:
        activities = self.look.activities
        return {"chat": activities.chat, "search": activities.search}.get(self.page, activities.list)

    def bottom_color(self) -> str:
        if self.page == "ai":
            return "#ffffff"
        return self.look.colors.list_page if self.page == "search" else self.look.colors.bar

    # ---- messages ---------------------------------------------------------------------------------------------

    def receive(self, chat: Chat, message: Message, *, seen: bool) -> None:
        """Add an incoming message, from the other side or from another device of ours."""
        chat.messages.append(message)
        if message.side is Side.THEM and not seen:
            chat.unread += 1

    def reading(self, chat: Chat) -> bool:
        return self.page == "chat" and self.chat is chat

    def _send(self) -> None:
        if self.chat is None:
            return
        field = self.draft(self.chat)
        if not field.text.strip():
            return
        self.host.text_leaves(self.key(self.chat))
        message = Message(Side.ME, field.text, Kind.TEXT, self.host.now(), from_here=True)
        field.text = ""
        self.chat.messages.append(message)
        self.view.scroll = 0
        self._despatch(self.chat, message)

    def _despatch(self, chat: Chat, message: Message) -> None:
        """Send a message on its way: with a red mark, with a spinner, or gone."""
        faults = self.host.faults
        if faults.send_fails:
            message.state = MessageState.FAILED
            self.host.log("send_failed", message.text)
        elif faults.send_slow:
            message.state = MessageState.SENDING
            message.done_at = self.host.now() + timedelta(seconds=faults.send_slow)
        else:
            message.state = MessageState.OK
            self.host.text_left(self.key(chat), message)

    def _resend(self, message: Message) -> None:
        if self.chat is not None and message in self.chat.messages:
            self.host.log("resend", message.text)
            self._despatch(self.chat, message)

    def settle(self) -> bool:
        """End the spinners that are due; whether there were any."""
        changed = False
        for chat in self.world.chats.values():
            for message in chat.settle(self.host.now()):
                changed = True
                self.host.text_left(self.key(chat), message)
        return changed

    def _ask_ai(self) -> None:
        text = self.ai.text.strip()
        if text:
            self.ai.text = ""
            self.ai_lines += [(Side.ME, text), (Side.THEM, f"关于“{text}”，为您找到以下内容：")]
            self.host.ai_asked(text)

    def _tool(self, name: str) -> None:
        self.host.log("tool", name)
        if name == "问AI":
            self.open_ai()
        elif name in ("红包", "转账"):
            self.host.pay_tapped(name)

    # ---- the screen -------------------------------------------------------------------------------------------

    def elements(self) -> list[Element]:
        if self.page == "chat" and self.chat is not None:
            return self._chat(self.chat)
        if self.page == "search":
            return lists.search_page(self)
        if self.page == "ai":
            return ai_page(self)
        return lists.list_page(self)

    def _chat(self, chat: Chat) -> list[Element]:
        def unpin() -> None:
            chat.strip = ""

        def talk(talking: bool) -> None:
            self.talking[chat.name] = talking
            self.host.focus_on(None if talking else self.draft(chat))

        handlers = ChatHandlers(
            lambda: _drop(self.back()), self._resend, unpin, BarHandlers(self._send, self._tool, talk)
        )
        return chat_page(
            self.host,
            self.sheet,
            chat,
            self.draft(chat),
            self.view,
            unread=sum(other.unread for other in self.world.chats.values() if other is not chat),
            talking=self.talking.get(chat.name, self.look.voice_first),
            handlers=handlers,
        )


def _drop(_: bool) -> None:
    """Do nothing: a handler returns nothing."""
