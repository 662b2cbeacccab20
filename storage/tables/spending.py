"""What models used."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import UtcTime, metadata

# What models used, by the owner's day, over all processes.
model_days = sa.Table(
    "model_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("tokens_in", sa.BigInteger, nullable=False),
    sa.Column("tokens_out", sa.BigInteger, nullable=False),
    sa.Column("tokens_cached", sa.BigInteger, nullable=False),  # part of tokens_in
    sa.Column("cost", sa.Float, nullable=False),
)

# The calls of this minute, if they are limited.
model_minutes = sa.Table(
    "model_minutes",
    metadata,
    sa.Column("minute", UtcTime, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float, nullable=False),
)
