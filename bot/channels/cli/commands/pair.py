"""``phonedesk pair``: invites one more person."""

from __future__ import annotations

import structlog

from bot.app.settings.layers import Settings
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import before
from bot.desk.actors import Role

log = structlog.get_logger(__name__)

SECONDS = 4.0


def pair(
    role: Role = Role.OPERATOR,
    hours: float = 24,
    name: str = "",
    as_json: Json = False,
) -> None:
    """Print a pairing code for one more person, or a link to the console for somebody without Telegram."""
    made, lang = with_desk(lambda desk, me: desk.team.invite(me, role, hours, name=name))
    start_link = "" if made.link else run_async(lambda: _start_link(settings_from()))
    link = f"{start_link}{made.code}" if start_link else made.link
    if as_json:
        expires = made.expires_at.isoformat()
        plain = {"id": made.id, "code": made.code, "role": role.value, "expires_at": expires, "link": link}
        print_json({**plain, "name": made.name} if made.name else plain)
        return
    words = texts(lang)
    console = Console()
    for_console = words.get("invite.for_console", name=made.name)
    console.print(Text(for_console if made.link else words.get("serve.pair", code=made.code)))
    if link:
        console.print(Text(f"{before(words.get('invite.link'), words)}{link}"), soft_wrap=True)
    console.print(Text(f"{before(words.get('whoami.role'), words)}{words.get(f'role.{role.value}')}"))
    if not made.link and not settings_from().telegram.token.get_secret_value():
        console.print(Text(words.get("invite.no_bot"), "yellow"))
    until = f"{made.expires_at:%Y-%m-%d %H:%M}"
    console.print(Text(f"{before(words.get('invite.until'), words)}{until}"))


async def _start_link(settings: Settings) -> str:
    """Return the link that the code is appended to; "" without a bot, or if Telegram does not tell its name."""
    token = settings.telegram.token.get_secret_value()
    if not token:
        return ""
    from telegram.error import TelegramError

    from bot.channels.telegram.request import bot_at, introduce

    async with bot_at(token, settings.telegram.api_base_url, settings.telegram_proxy, SECONDS) as bot:
        try:
            await introduce(bot)
            return f"https://t.me/{bot.username}?start="
        except TelegramError as error:
            log.debug("bot_not_asked", error=str(error).replace(token, "***"))
            return ""
