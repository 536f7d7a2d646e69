"""Small XML: elements whose text comes back unchanged from any parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Element", "text_of"]

# What XML 1.0 cannot carry in any spelling: most control characters, surrogates, two non-characters.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ATTRIBUTE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def text_of(text: str) -> str:
    """Return `text` escaped as element content; characters XML cannot carry become U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text).translate(_TEXT)


def _attribute_of(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text).translate(_ATTRIBUTE)


class Element(NamedTuple):
    """One element, not yet text.

    Args:
        tag: A legal XML name.
        attributes: Its attributes, unescaped.
        content: Its text, unescaped, or its child elements.
    """

    tag: str
    attributes: Mapping[str, str] = {}
    content: str | Sequence[Element] = ""

    def render(self, indent: str = "") -> str:
        """Return the XML: text inline, each child on a line of its own, two spaces deeper."""
        values = "".join(f' {name}="{_attribute_of(value)}"' for name, value in self.attributes.items())
        opening = f"{indent}<{self.tag}{values}>"
        if isinstance(self.content, str):
            return f"{opening}{text_of(self.content)}</{self.tag}>"
        children = [child.render(indent + "  ") for child in self.content]
        return "\n".join([opening, *children, f"{indent}</{self.tag}>"])
