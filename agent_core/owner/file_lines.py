"""Find the line of each field of a TOML or JSON file, for the messages about what is wrong in it.

``tomllib`` and ``json`` give a line for broken syntax only, and pydantic knows fields, not lines. The tree-sitter
grammars give every node's place, also inside inline tables and arrays of tables; they are loaded when a file is wrong.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Node

Form = Literal["toml", "json"]
Place = tuple[str | int, ...]


def lines_of(text: str, form: Form) -> dict[Place, int]:
    """Return the line (from 1) of every field and element of ``text``, by its path. The whole text is in line 1."""
    places = _toml(_parsed(text, form), (), Counter()) if form == "toml" else _json_root(_parsed(text, form))
    lines: dict[Place, int] = {(): 1}
    for path, line in places:
        lines.setdefault(path, line)
    return lines


def line_of(lines: dict[Place, int], path: Place) -> int:
    """Return the line of ``path``, or of its innermost part that exists: a missing field gets the line of its table."""
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _parsed(text: str, form: Form) -> Node:
    import tree_sitter
    import tree_sitter_json
    import tree_sitter_toml

    grammar = (tree_sitter_toml if form == "toml" else tree_sitter_json).language()
    return tree_sitter.Parser(tree_sitter.Language(grammar)).parse(text.encode()).root_node


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _toml(node: Node, path: Place, elements: Counter[Place]) -> Iterator[tuple[Place, int]]:
    """Yield the path and line of every part of a TOML node.

    elements: counts the tables of each array of tables so far, because a header refers to the newest of them.
    """
    for child in node.named_children:
        match child.type:
            case "table":
                inner = _newest(_keys(child.named_children[0]), elements)
                yield inner, _line(child)
                yield from _toml(child, inner, elements)
            case "table_array_element":
                *outer, name = _keys(child.named_children[0])
                array = (*_newest(tuple(outer), elements), name)
                yield array, _line(child)
                inner = (*array, elements[array])
                elements[array] += 1
                yield inner, _line(child)
                yield from _toml(child, inner, elements)
            case "pair":
                inner = path
                for key in _keys(child.named_children[0]):
                    inner = (*inner, key)
                    yield inner, _line(child)
                yield from _toml_value(child.named_children[-1], inner)


def _toml_value(node: Node, path: Place) -> Iterator[tuple[Place, int]]:
    if node.type == "inline_table":
        yield from _toml(node, path, Counter())
    elif node.type == "array":
        for index, child in enumerate(child for child in node.named_children if child.type != "comment"):
            yield (*path, index), _line(child)
            yield from _toml_value(child, (*path, index))


def _newest(keys: Place, elements: Counter[Place]) -> Place:
    path: Place = ()
    for key in keys:
        path = (*path, key)
        if elements[path]:
            path = (*path, elements[path] - 1)
    return path


def _keys(node: Node) -> Place:
    """Return the parts of a key: ``a."b c"`` is ("a", "b c")."""
    if node.type == "dotted_key":
        return tuple(part for child in node.named_children for part in _keys(child))
    text = _text(node)
    return (next(iter(tomllib.loads(f"{text} = 0"))) if node.type == "quoted_key" else text,)


def _json_root(node: Node) -> Iterator[tuple[Place, int]]:
    for child in node.named_children:
        yield from _json(child, ())


def _json(node: Node, path: Place) -> Iterator[tuple[Place, int]]:
    if node.type == "object":
        for pair in (child for child in node.named_children if child.type == "pair"):
            key, value = pair.named_children[0], pair.named_children[-1]
            inner = (*path, json.loads(_text(key)))
            yield inner, _line(pair)
            yield from _json(value, inner)
    elif node.type == "array":
        for index, child in enumerate(node.named_children):
            yield (*path, index), _line(child)
            yield from _json(child, (*path, index))
