"""What a docstring says: its prose, and a description for each parameter.

Google style is read by a short parser of our own. NumPy and Sphinx styles go through griffe, which
is imported only when a docstring is written in one of them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Docstring", "parse"]

_PARAMETER_HEAD = re.compile(r"(?:(?:keyword|other) )?(?:args|arguments|params|parameters)")
_HEAD = re.compile(
    _PARAMETER_HEAD.pattern
    + r"|attention|attributes|caution|danger|deprecated|errors?|examples?|exceptions|functions|hints?|important|methods"
    r"|modules|notes?|raises?|receives|references?|requires|returns?|see also|side effects|throws|tips?|todos?|usage"
    r"|warnings?|warns|yields?"
)
# One or more names, perhaps a type in parentheses (which may hold any others), and a colon.
_NAME = r"`{0,2}(?:\\?\*){0,2}\w+`{0,2}"
_ENTRY = re.compile(rf"({_NAME}(?:, ?{_NAME})*+) *+(?:\(.*?\) *+)?:(?!:)")
_DECORATION = str.maketrans("", "", "`\\* ")
_UNDERLINED = re.compile(r"^( *+)(\w[\w ]*+)\n *+(?:--[ -]*+|==[ =]*+)$", re.MULTILINE)
_FIELD = re.compile(r"^ *+:(?:(param|arg|key)|return|rais|except|rtype|type|yield)\w*+(?: [^:\n]++)?:", re.MULTILINE)
# How long griffe takes is not ours to promise, so it is given no text that is longer than people write.
_MAX_FOREIGN_CHARS = 100_000


class Docstring(NamedTuple):
    """A docstring, read.

    Args:
        prose: Everything before the first section, its indentation removed.
        parameters: The description of each parameter, by name without stars.
    """

    prose: str
    parameters: Mapping[str, str]


def parse(doc: str | None) -> Docstring:
    """Return what a docstring says; never raises, whatever the text.

    Google, NumPy and Sphinx styles are understood. A section head is a known word alone on its line,
    at the docstring's own indentation.

    Args:
        doc: The docstring as it stands in `__doc__`, indented or not.
    """
    if not isinstance(doc, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # __doc__ may be anything
        return Docstring("", {})
    if "\n" not in doc and ":" not in doc and "\r" not in doc:
        return Docstring(doc.strip(), {})
    text = _with_plain_whitespace(doc)
    found = _google(text.split("\n"))
    if ("--" in text or "==" in text) and (heads := _numpy_heads(text)):
        wanted = any(_PARAMETER_HEAD.fullmatch(word) for _, word in heads)
        return _merged(found, "numpy", text, heads[0][0], wanted=wanted)
    if ("\n:" in text or " :" in text or text[0] == ":") and (fields := list(_FIELD.finditer(text))):
        return _merged(found, "sphinx", text, fields[0].start(), wanted=any(field[1] for field in fields))
    return found


def _with_plain_whitespace(doc: str) -> str:
    if "\r" in doc:
        doc = doc.replace("\r\n", "\n").replace("\r", "\n")
    return doc.expandtabs() if "\t" in doc else doc


def _margin(lines: list[str]) -> int:
    return min([len(line) - len(text) for line in lines[1:] if (text := line.lstrip())], default=0)


def _without_margin(lines: list[str], margin: int) -> str:
    return "\n".join([lines[0].strip(), *[line[margin:].rstrip() for line in lines[1:]]]).strip() if lines else ""


def _prose(text: str) -> str:
    lines = text.split("\n")
    return _without_margin(lines, _margin(lines))


# -- Google


def _google(lines: list[str]) -> Docstring:
    margin = _margin(lines)
    heads = [
        (at, word)
        for at, line in enumerate(lines)
        if (text := line.rstrip())[-1:] == ":"
        and _HEAD.fullmatch(word := text.strip(" :").lower())
        and (at == 0 or not text[: margin + 1].isspace())
    ]
    prose = _without_margin(lines[: heads[0][0]] if heads else lines, margin)
    parameters: dict[str, str] = {}
    for (at, word), (end, _) in pairwise([*heads, (len(lines), "")]):
        if _PARAMETER_HEAD.fullmatch(word):
            _read_entries(lines[at + 1 : end], margin if at else -1, parameters)
    return Docstring(prose, parameters)


def _read_entries(lines: list[str], outside: int, into: dict[str, str]) -> None:
    entry_indent = 0
    names = ""
    words: list[str] = []
    for line in lines:
        text = line.lstrip()
        if not text:
            continue
        indent = len(line) - len(text)
        if indent <= outside:
            break
        entry_indent = entry_indent or indent
        if indent <= entry_indent and (entry := _entry(text)):
            _keep(names, words, into)
            names, words = entry[0], [entry[1].strip()]
        else:
            words.append(text.rstrip())
    _keep(names, words, into)


def _entry(text: str) -> tuple[str, str] | None:
    """Return the names an entry begins with, and its text; None for a line that goes on with the one before."""
    name, colon, said = text.partition(":")
    if colon and name.isidentifier() and not said.startswith(":"):  # as most are, and quicker than the pattern
        return name, said
    entry = _ENTRY.match(text)
    return (entry[1], text[entry.end() :]) if entry else None


def _keep(names: str, lines: list[str], into: dict[str, str]) -> None:
    text = lines[0] if len(lines) == 1 else " ".join([line for line in lines if line])
    if names.isidentifier():
        into.setdefault(names, text)
    elif names:
        for name in names.translate(_DECORATION).split(","):
            into.setdefault(name, text)


# -- NumPy and Sphinx


def _numpy_heads(text: str) -> list[tuple[int, str]]:
    titles = [(title.start(), title[2].strip().lower()) for title in _UNDERLINED.finditer(text)]
    return [title for title in titles if _HEAD.fullmatch(title[1])]


def _merged(google: Docstring, style: str, text: str, prose_end: int, *, wanted: bool) -> Docstring:
    # Styles are mixed in the wild: the first section of any of them ends the prose.
    prose = min(_prose(text[:prose_end]), google.prose, key=len)
    return Docstring(prose, {**google.parameters, **(_foreign_parameters(style, text) if wanted else {})})


def _foreign_parameters(style: str, text: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    if len(text) <= _MAX_FOREIGN_CHARS:
        try:
            _read_with_griffe(style, text, parameters)
        except Exception:  # noqa: BLE001  # a docstring that griffe cannot read describes no parameters
            return parameters
    return parameters


def _read_with_griffe(style: str, text: str, into: dict[str, str]) -> None:
    import griffe  # slow to import, and few docstrings need it

    read = griffe.parse_numpy if style == "numpy" else griffe.parse_sphinx
    for section in read(griffe.Docstring(text), warnings=False):
        if isinstance(section, griffe.DocstringSectionParameters):  # "other parameters" are a kind of these
            for parameter in section.value:
                _keep(parameter.name, [line.strip() for line in parameter.description.split("\n")], into)
