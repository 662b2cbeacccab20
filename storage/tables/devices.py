"""Phones, the hosts and clocks, and leases."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, server_default=""),
    sa.Column("run_id", sa.Text, nullable=False, server_default=""),
    sa.Column("fencing", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("acquired_at", UtcTime),
    sa.Column("heartbeat_at", UtcTime),
    sa.Index(None, "run_id"),
)

# The subjects of alerts: each phone that was seen, the model, the knowledge base.
watched = sa.Table(
    "watched",
    metadata,
    sa.Column("subject", sa.Text, primary_key=True),  # phone:<serial>, model, knowledge
    sa.Column("down_since", UtcTime),  # None: it is up
    sa.Column("seen_down_at", UtcTime),
    sa.Column("told_at", UtcTime),  # None: nobody has been alerted to this outage
    sa.Column("why", sa.Text, nullable=False, server_default=""),
    sa.Column("looked_at", UtcTime, nullable=False),
)

# The phones that were seen, so that a phone keeps its name while it is away.
phones = sa.Table(
    "phones",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, nullable=False, server_default=""),  # as adb writes it, with underscores
    sa.Column("hardware", sa.Text, nullable=False, server_default=""),  # the identity that no other phone has; "": none
    sa.Column("seen_at", UtcTime, nullable=False),
)

# Network addresses of phones. An address belongs to the phone that was last reached there.
phone_addresses = sa.Table(
    "phone_addresses",
    metadata,
    sa.Column("address", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
)

# Learnt facts about one version of an app on one phone.
learnt_apps = sa.Table(
    "learnt_apps",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("app", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("data", Json, nullable=False),
    sa.Column("learnt_at", UtcTime, nullable=False),
)

# The app that an icon of a phone's home screen opened, by its label without spaces and case.
app_labels = sa.Table(
    "app_labels",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("label", sa.Text, primary_key=True),
    sa.Column("package", sa.Text, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
)

# The processes that have phones, by name. One process has a name at a time.
hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),  # of the process that has the name
    sa.Column("release", sa.Text, nullable=False, server_default=""),
    sa.Column("state", sa.Text, nullable=False),  # up, draining, ended
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

# The processes that run a clock, which starts due schedules. They need not be hosts.
clocks = sa.Table(
    "clocks",
    metadata,
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

# The phones that each host sees; several hosts may see the same one. A row counts while its host's heartbeat is fresh.
host_phones = sa.Table(
    "host_phones",
    metadata,
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),  # as adb writes it: device, offline, unauthorized; gone: not listed
    sa.Column("since", UtcTime, nullable=False),
    sa.Index(None, "serial"),
)

# Requests of one process to a phone that another process has.
phone_requests = sa.Table(
    "phone_requests",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # screenshot
    sa.Column("state", sa.Text, nullable=False),  # open, done, failed
    sa.Column("jpeg", sa.LargeBinary),
    sa.Column("error", sa.Text, nullable=False, server_default=""),
    sa.Column("error_kind", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "host", "state"),
    sqlite_autoincrement=True,
)
