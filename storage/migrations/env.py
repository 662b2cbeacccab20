"""Alembic's entry; the connection is given by ``Database.migrate``."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from storage.tables import metadata

connection = context.config.attributes.get("connection")
if not isinstance(connection, sa.Connection):
    raise RuntimeError("Migrations run through storage.engine.Database.migrate().")
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
