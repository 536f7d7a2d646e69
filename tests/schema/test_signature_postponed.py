"""The same with every hint as text, as `from __future__ import annotations` makes them."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolcrib.errors import ToolSignatureError
from toolcrib.tools import Tool, tool
from toolcrib.types import ToolContext
from toolcrib.types import ToolContext as Ctx

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(Enum):
    RED = "red"


class Line(BaseModel):
    sku: str
    parent: Line | None = None


class Record(typing.TypedDict):
    a: int
    b: typing.NotRequired[list[Line]]
    c: typing.NotRequired[Record]


@dataclass
class Point:
    x: int
    colour: Colour = Colour.RED


def everything(
    a: int,
    b: str | None,
    c: list[dict[str, float]],
    d: Literal["x", "y"] = "x",
    e: Annotated[int, Field(ge=1)] = 1,
    f: Line | None = None,
    g: Point | None = None,
    h: Record | None = None,
    i: Colour = Colour.RED,
    context: ToolContext[Any] | None = None,
) -> dict[str, Any]:
    assert context is not None
    return {"c": c, "f": f, "g": g, "h": h, "i": i}


def test_every_type_is_resolved():
    found = Tool(everything).call(
        '{"a": 1, "b": null, "c": [{"k": 1}], "f": {"sku": "s", "parent": {"sku": "t"}}, '
        '"g": {"x": "1"}, "h": {"a": "1", "b": [{"sku": "u"}], "c": {"a": 2}}, "i": "red"}'
    )
    assert found == {
        "c": [{"k": 1.0}],
        "f": Line(sku="s", parent=Line(sku="t")),
        "g": Point(1),
        "h": {"a": 1, "b": [Line(sku="u")], "c": {"a": 2}},
        "i": Colour.RED,
    }


def test_the_schema_is_the_same_as_with_real_hints():
    def real(a, b, c, d="x", e=1): ...

    real.__annotations__ = {
        "a": int,
        "b": str | None,
        "c": list[dict[str, float]],
        "d": Literal["x", "y"],
        "e": Annotated[int, Field(ge=1)],
    }
    properties = Tool(everything).input_schema["properties"]
    assert {name: properties[name] for name in "abcde"} == Tool(real).input_schema["properties"]


def plain(a: int, b: float = 0.5, c: str = "", d: bool = False): ...  # noqa: FBT001, FBT002


def test_plain_hints_are_read_as_they_are_meant():
    types = [node["type"] for node in Tool(plain).input_schema["properties"].values()]
    assert types == ["integer", "number", "string", "boolean"]


def required(context: Ctx[int], x: int): ...


def test_the_context_is_found_under_another_name():
    assert Tool(required).context_parameter == "context"
    assert list(Tool(required).input_schema["properties"]) == ["x"]


def needs_decimal(x: Decimal): ...


def test_a_name_imported_for_type_checkers_only_is_a_signature_error():
    with pytest.raises(ToolSignatureError, match="Decimal"):
        _ = Tool(needs_decimal).input_schema


@tool
def early(x: Late) -> int:
    return x.n


class Late(BaseModel):
    n: int


def test_a_class_that_comes_later_in_the_module_is_found_when_it_is_needed():
    assert Tool.wrap(early).call('{"x": {"n": "3"}}') == 3


class Kit:
    @tool
    def method(self, x: Line, colour: Colour = Colour.RED) -> Any:
        return type(self), x, colour


def test_methods_are_resolved_too():
    assert Tool.wrap(Kit().method).call('{"x": {"sku": "a"}}') == (Kit, Line(sku="a"), Colour.RED)
