"""The commands of the virtual phone's shell, by subject. A new one is a function in one of these files."""

from simulator.phone.commands import (  # noqa: F401  (importing them fills the table)
    activity,
    app_process,
    dumpsys,
    getevent,
    keyboard,
    packages,
    screen,
    system,
    texts,
    tools,
    touch,
)
from simulator.phone.commands.base import COMMANDS

__all__ = ["COMMANDS"]
