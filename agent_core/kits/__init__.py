"""Screen kits: one page of an app as geometry, colours and replaced texts, in a file that its owner can share."""

from agent_core.kits.kit import Kit, differences, kit_text, load_kit

__all__ = ["Kit", "differences", "kit_text", "load_kit"]
