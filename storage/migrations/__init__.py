"""Bring the tables to this release: make them in a new database, or migrate those of an earlier release."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from agent_core.errors import ConfigInvalid
from storage.tables import metadata

MIGRATIONS = Path(__file__).parent
LONGEST_REVISION = 40  # characters of a revision that are shown

# Alembic's own table; see its ``MigrationContext``.
_VERSIONS = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))


class OtherRelease(ConfigInvalid):
    """The tables are those of another release, and this one cannot migrate them."""

    def __init__(self, revision: str, name: str) -> None:
        self.revision = revision
        super().__init__(
            f"The database {name} was made by another release of phonedesk (version {revision}).",
            advice="Update phonedesk if that release was a later one; else name another database.",
            key="database_other_release",
            name=name,
            revision=revision,
        )


def upgrade(connection: sa.Connection, name: str) -> None:
    """Bring the tables of the database ``name`` to the newest revision. Raises OtherRelease as ``revision_of`` does."""
    found, newest = revision_of(connection, name), max(_revisions())
    if found == newest:
        return
    if not found:  # what the migrations arrive at; Alembic takes a tenth of a start
        metadata.create_all(connection, checkfirst=False)
        _VERSIONS.create(connection, checkfirst=True)
        connection.execute(sa.insert(_VERSIONS).values(version_num=newest))
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def revision_of(connection: sa.Connection, name: str) -> str:
    """Return the revision of the tables, "" if there are none. Raises OtherRelease if this release does not know it."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return ""
    found, known = connection.execute(sa.select(_VERSIONS.c.version_num)).scalars().all(), _revisions()
    for revision in found:
        if revision not in known:
            raise OtherRelease(str(revision)[:LONGEST_REVISION], name)
    return " ".join(found)


def _revisions() -> set[str]:
    """Return the revisions of the tables, which the files of the migrations are named after."""
    return {path.stem.partition("_")[0] for path in MIGRATIONS.glob("versions/2*.py")}
