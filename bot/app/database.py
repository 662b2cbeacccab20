"""The database of the settings, in a module of its own, so that commands that need only it load nothing else."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

from agent_core import extras
from agent_core.errors import ConfigInvalid
from bot.app.settings.layers import Settings
from storage.engine import Database, database_url

PATIENCE = 75.0  # seconds to wait for a database that goes away while in use
_NO_RIGHT = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}


async def open_database(settings: Settings) -> Database:
    """Open the database of the settings, and bring its tables up to this release.

    Raises ConfigInvalid if it cannot be opened, and ExtraMissing for PostgreSQL without its driver.
    """
    url = database_url(settings.url)
    if url.get_backend_name() != "sqlite":
        extras.require("postgres")
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        db = Database(settings.url)
    except OSError as error:
        raise ConfigInvalid(
            f"The data folder cannot be used: {error}.",
            advice="Set PHONEDESK_DATA_DIR.",
            key="no_data_folder",
            why=error,
        ) from None
    try:
        await db.migrate()
    except (OSError, DBAPIError) as error:
        await db.close()
        cause = getattr(error, "orig", error)
        why = str(cause)
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF in _NO_RIGHT:
            raise ConfigInvalid(
                f"The database {url.database} cannot be opened: {why}.",
                advice="The user that runs phonedesk must have the right to write to it and to its folder.",
                key="no_database_file",
                file=url.database,
                why=why,
            ) from None
        raise ConfigInvalid(
            f"The database cannot be opened: {why}.",
            advice="Check PHONEDESK_DATABASE_URL and that the server runs.",
            key="no_database",
            why=why,
        ) from None
    except BaseException:
        await db.close()
        raise
    db.patience = PATIENCE
    return db
