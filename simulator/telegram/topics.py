"""Topics of forums: made, changed, closed, opened again and deleted by the bot."""

from __future__ import annotations

from simulator.telegram import rules
from simulator.telegram.calls import Call
from simulator.telegram.methods import handles
from simulator.telegram.rules import refuse
from simulator.telegram.world import Chat, Topic, World

MAX_NAME = 128
COLOURS = {7322096, 16766590, 13338331, 9367192, 16749490, 16478047}


def _forum(world: World, call: Call) -> Chat:
    chat = world.chat_for_bot(call.get("chat_id"))
    world.check_limit(chat.id)
    if not chat.forum:
        raise refuse("the chat is not a forum")
    return chat


def _topic(world: World, call: Call, what: str) -> tuple[Chat, Topic]:
    """Return a topic that the bot may manage: as an administrator with the right, or because it made it."""
    chat = _forum(world, call)
    topic = chat.topics.get(call.get("message_thread_id"))
    if topic is None:
        raise refuse("TOPIC_ID_INVALID")
    if not chat.manages_topics and topic.creator.id != world.bot.id:
        raise refuse(f"not enough rights to {what} the topic")
    return chat, topic


def _name(name: str) -> str:
    if not name.strip():
        raise refuse("TOPIC_TITLE_EMPTY")
    if rules.utf16(name) > MAX_NAME:
        raise refuse("topic name is too long")
    return name.strip()


@handles
async def create_forum_topic(world: World, call: Call) -> object:
    chat = _forum(world, call)
    if not chat.manages_topics:
        raise refuse("not enough rights to create a topic")
    colour = call.get("icon_color")
    if colour is not None and colour not in COLOURS:
        raise refuse("invalid icon_color specified")
    topic = world.topic(chat, _name(call.get("name")), world.bot)
    return {"message_thread_id": topic.id, "name": topic.name, "icon_color": colour or 7322096}


@handles
async def edit_forum_topic(world: World, call: Call) -> object:
    chat, topic = _topic(world, call, "edit")
    name = topic.name if call.get("name") is None else _name(call.get("name"))
    if name == topic.name and call.get("icon_custom_emoji_id") is None:
        raise refuse("TOPIC_NOT_MODIFIED")
    topic.name = name
    world.tell(chat, world.bot, {"forum_topic_edited": {"name": name}}, thread_id=topic.id)
    return True


@handles
async def close_forum_topic(world: World, call: Call) -> object:
    return _opened(world, call, closed=True)


@handles
async def reopen_forum_topic(world: World, call: Call) -> object:
    return _opened(world, call, closed=False)


def _opened(world: World, call: Call, *, closed: bool) -> bool:
    chat, topic = _topic(world, call, "edit")
    if topic.closed is closed:
        raise refuse("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    told: dict[str, object] = {"forum_topic_closed" if closed else "forum_topic_reopened": {}}
    world.tell(chat, world.bot, told, thread_id=topic.id)
    return True


@handles
async def delete_forum_topic(world: World, call: Call) -> object:
    chat = _forum(world, call)
    if not chat.manages_topics:
        raise refuse("not enough rights to delete the topic")
    if call.get("message_thread_id") not in chat.topics:
        raise refuse("TOPIC_ID_INVALID")
    world.delete_topic(chat, call.get("message_thread_id"))
    return True
