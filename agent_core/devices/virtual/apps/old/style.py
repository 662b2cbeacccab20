"""The looks by which chat apps differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChatStyle:
    page: str
    bar: str  # the title bar
    line: str
    input_bar: str
    mine: str  # our bubbles
    mine_text: str
    theirs: str
    accent: str
    send: str
    tools: tuple[str, ...]
    packet: str  # what it calls a red packet
    title_centered: bool = False
    round_avatars: bool = False
    bubble_radius: int = 28


QQ_STYLE = ChatStyle(
    page="#f1f1f1",
    bar="#f7f8fa",
    line="#e3e4e6",
    input_bar="#f5f6f8",
    mine="#0099ff",
    mine_text="#ffffff",
    theirs="#ffffff",
    accent="#0099ff",
    send="#0099ff",
    tools=("语音", "图片", "拍摄", "红包", "表情", "问AI", "更多"),
    packet="QQ红包",
    round_avatars=True,
)

WECHAT_STYLE = ChatStyle(
    page="#ededed",
    bar="#ededed",
    line="#d9d9d9",
    input_bar="#f7f7f7",
    mine="#95ec69",
    mine_text="#1a1a1a",
    theirs="#ffffff",
    accent="#07c160",
    send="#07c160",
    tools=("语音", "图片", "拍摄", "红包", "表情", "更多"),
    packet="微信红包",
    title_centered=True,
    bubble_radius=12,
)
