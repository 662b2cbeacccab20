"""Reads the errors that the code raises, as they are written."""

from __future__ import annotations

import ast


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def of_a_row(call: ast.Call) -> bool:
    """Whether the error is caught where an import is planned, and told of its row, with a text of its own."""
    return any(isinstance(one, ast.Call) and name_of(one.func) == "ImportMessage" for one in call.args)
