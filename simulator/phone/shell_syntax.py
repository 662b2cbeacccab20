"""The grammar of the virtual phone's shell: a small part of what Android's mksh reads.

Lists (``;``, ``&``, ``&&``, ``||``, new lines), pipes, ``!``, groups in parentheses or braces, redirections, quotes,
``$NAME``, ``${NAME}``, ``$?`` and ``$(…)``. No loops, no functions: they are a syntax error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MAX_DEPTH = 16
MAX_COMMANDS = 2000

_BLANK = " \t"
_END_OF_WORD = " \t\n;&|<>()"
_RESERVED = frozenset({"if", "then", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "function"})


class ShellSyntaxError(ValueError):
    """The message is what the shell prints after ``syntax error: ``."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word. ``quoted``: not split at blanks, no file patterns."""

    kind: Literal["text", "variable", "command"]
    value: str
    quoted: bool


Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    """``target`` is a file name, or the descriptor that ``descriptor`` becomes a copy of."""

    descriptor: int
    target: Word | int
    append: bool = False
    both: bool = False  # ``&>``: standard error goes there too


@dataclass(slots=True)
class Simple:
    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    body: CommandList
    redirects: list[Redirect] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    commands: list[Simple | Group]
    negated: bool = False


@dataclass(slots=True)
class CommandList:
    """Each pipeline with the operator before it: ``;`` always, ``&&`` after success, ``||`` after failure."""

    entries: list[tuple[Literal[";", "&&", "||"], Pipeline]] = field(default_factory=list)


def parse(line: str, depth: int = 0) -> CommandList:
    """Parse a line. Raises ShellSyntaxError if it cannot be read."""
    parser = _Parser(line, depth)
    parsed = parser.command_list("")
    parser.expect_end()
    return parsed


class _Parser:
    def __init__(self, line: str, depth: int) -> None:
        self._line = line
        self._at = 0
        self._depth = depth
        self._count = 0

    # -- characters

    def _peek(self, count: int = 1) -> str:
        return self._line[self._at : self._at + count]

    def _take(self, wanted: str) -> bool:
        if not self._line.startswith(wanted, self._at):
            return False
        self._at += len(wanted)
        return True

    def _skip_blanks(self, *, lines: bool = False) -> None:
        while True:
            if self._take("\\\n"):
                continue
            character = self._peek()
            if character == "#":
                end = self._line.find("\n", self._at)
                self._at = len(self._line) if end < 0 else end
            elif character and (character in _BLANK or (lines and character == "\n")):
                self._at += 1
            else:
                return

    def _unexpected(self) -> ShellSyntaxError:
        found = self._peek()
        return ShellSyntaxError("unexpected EOF" if not found else f"unexpected '{found}'".replace("\n", "newline"))

    def expect_end(self) -> None:
        if self._at < len(self._line):
            raise self._unexpected()

    # -- grammar

    def command_list(self, closing: str) -> CommandList:
        result = CommandList()
        operator: Literal[";", "&&", "||"] = ";"
        while True:
            self._skip_blanks(lines=True)
            if not self._peek() or (closing and self._peek() == closing):
                if operator != ";":
                    raise self._unexpected()
                return result
            result.entries.append((operator, self._pipeline()))
            self._skip_blanks()
            if self._take("&&"):
                operator = "&&"
            elif self._take("||"):
                operator = "||"
            elif self._take(";") or self._take("\n") or self._take("&"):
                operator = ";"
            elif self._peek() and self._peek() != closing:
                raise self._unexpected()
            else:
                operator = ";"

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._peek(2) in {"! ", "!\t"}:
            negated = not negated
            self._at += 2
            self._skip_blanks()
        commands = [self._command()]
        self._skip_blanks()
        while self._peek() == "|" and self._peek(2) != "||":
            self._at += 1
            self._skip_blanks(lines=True)
            commands.append(self._command())
            self._skip_blanks()
        return Pipeline(commands, negated)

    def _command(self) -> Simple | Group:
        self._count += 1
        if self._count > MAX_COMMANDS:
            raise ShellSyntaxError("too many commands")
        if self._take("("):
            return self._group(")")
        if self._peek() == "{" and (self._line[self._at + 1 : self._at + 2] or "x") in " \t\n":
            self._at += 1
            return self._group("}")
        return self._simple()

    def _group(self, closing: str) -> Group:
        if self._depth >= MAX_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        self._depth += 1
        group = Group(self.command_list(closing))
        self._depth -= 1
        if not self._take(closing) or not group.body.entries:
            raise self._unexpected()
        self._skip_blanks()
        while redirect := self._redirect():
            group.redirects.append(redirect)
            self._skip_blanks()
        return group

    def _simple(self) -> Simple:
        command = Simple()
        while True:
            self._skip_blanks()
            character = self._peek()
            if redirect := self._redirect():
                command.redirects.append(redirect)
            elif not character or character in _END_OF_WORD:
                break
            elif not command.words and (assignment := self._assignment()):
                command.assignments.append(assignment)
            else:
                word = self._word()
                if not command.words and len(word) == 1 and not word[0].quoted and word[0].value in _RESERVED:
                    raise ShellSyntaxError(f"unexpected '{word[0].value}'")
                command.words.append(word)
        if not (command.words or command.assignments or command.redirects):
            raise self._unexpected()
        return command

    def _assignment(self) -> tuple[str, Word] | None:
        end = self._at
        while end < len(self._line) and (self._line[end].isalnum() or self._line[end] == "_"):
            end += 1
        name = self._line[self._at : end]
        if not name.isidentifier() or self._line[end : end + 1] != "=":
            return None
        self._at = end + 1
        following = self._peek()
        return name, () if not following or following in _END_OF_WORD else self._word()

    def _redirect(self) -> Redirect | None:
        start = self._at
        both = self._take("&>")
        if both:
            self._at -= 1
        digit = self._peek()
        descriptor = int(digit) if digit in {"0", "1", "2"} else None
        if descriptor is not None:
            self._at += 1
        if self._take("<"):
            descriptor, append = 0, False
        elif self._take(">"):
            descriptor, append = (1 if descriptor is None else descriptor), self._take(">")
        else:
            self._at = start
            return None
        if descriptor and self._take("&"):
            target = self._peek()
            if target not in {"1", "2"}:
                raise ShellSyntaxError("bad file descriptor")
            self._at += 1
            return Redirect(descriptor, int(target))
        self._skip_blanks()
        if not self._peek() or self._peek() in _END_OF_WORD:
            raise self._unexpected()
        return Redirect(descriptor, self._word(), append, both)

    # -- words

    def _word(self) -> Word:
        parts: list[Part] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Part("text", "".join(plain), quoted=False))
                plain.clear()

        while (character := self._peek()) and character not in _END_OF_WORD:
            if character == "'":
                flush()
                parts.append(Part("text", self._single_quoted(), quoted=True))
            elif character == '"':
                flush()
                parts.extend(self._double_quoted())
            elif character == "\\":
                self._at += 1
                if not self._take("\n"):
                    flush()
                    parts.append(Part("text", self._peek() or "\\", quoted=True))
                    self._at += 1
            elif character == "$" and (expansion := self._expansion(quoted=False)):
                flush()
                parts.append(expansion)
            elif character == "`":
                raise ShellSyntaxError("unexpected '`'")
            else:
                plain.append(character)
                self._at += 1
        flush()
        return tuple(parts)

    def _single_quoted(self) -> str:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            raise ShellSyntaxError("no closing quote")
        text = self._line[self._at + 1 : end]
        self._at = end + 1
        return text

    def _double_quoted(self) -> list[Part]:
        self._at += 1
        parts: list[Part] = []
        plain: list[str] = []
        while True:
            character = self._peek()
            if not character:
                raise ShellSyntaxError("no closing quote")
            if self._take('"'):
                break
            if character == "\\" and self._peek(2)[1:] in {'"', "\\", "$", "`", "\n"}:
                plain.append(self._peek(2)[1:].replace("\n", ""))
                self._at += 2
            elif character == "$" and (expansion := self._expansion(quoted=True)):
                parts.append(Part("text", "".join(plain), quoted=True))
                plain.clear()
                parts.append(expansion)
            else:
                plain.append(character)
                self._at += 1
        parts.append(Part("text", "".join(plain), quoted=True))
        return parts

    def _expansion(self, *, quoted: bool) -> Part | None:
        """Return the expansion that begins at this ``$``, None if it is only a ``$``."""
        following = self._line[self._at + 1 : self._at + 2]
        if following == "(":
            return self._substitution(quoted=quoted)
        if following == "{":
            end = self._line.find("}", self._at)
            name = self._line[self._at + 2 : end]
            if end < 0 or not (name.isidentifier() or name in {"?", "$"}):
                raise ShellSyntaxError("bad substitution")
            self._at = end + 1
            return Part("variable", name, quoted)
        if following in {"?", "$", "#"}:
            self._at += 2
            return Part("variable", following, quoted)
        end = self._at + 1
        while (
            end < len(self._line)
            and self._line[end].isascii()
            and (self._line[end].isalnum() or self._line[end] == "_")
        ):
            end += 1
        name = self._line[self._at + 1 : end]
        if not name.isidentifier():
            return None
        self._at = end
        return Part("variable", name, quoted)

    def _substitution(self, *, quoted: bool) -> Part:
        """Read ``$(…)``: its end is found by reading its content; it is run when the word is needed."""
        if self._depth >= MAX_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        self._at += 2
        start = self._at
        self._depth += 1
        self.command_list(")")
        self._depth -= 1
        text = self._line[start : self._at]
        if not self._take(")"):
            raise self._unexpected()
        return Part("command", text, quoted)
