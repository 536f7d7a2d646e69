import enum
import functools
import inspect
import json
import math
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypeVar, Union
from uuid import UUID

import pytest
import typing_extensions
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import SchemaValidator

from toolcrib.errors import ToolSignatureError
from toolcrib.schema._pydantic import by_pydantic
from toolcrib.schema.signature import Parameter, Shape, _directly, _NotPlainError, context_of, read_signature, shape_of
from toolcrib.tools import Tool
from toolcrib.types import ToolContext
from toolcrib.types import ToolContext as Ctx

EMPTY = inspect.Parameter.empty
T = TypeVar("T")
UserId = NewType("UserId", int)
Alias = list[dict[str, int]]


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Line(BaseModel):
    """A line of an order."""

    sku: str = Field(description="The article.", pattern="^[A-Z]+$")
    count: int = 1


class Order(BaseModel):
    lines: list[Line]
    note: str | None = None


class Tree(BaseModel):
    value: int
    children: "list[Tree]" = []


class Box(BaseModel, Generic[T]):
    content: T


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Old(typing.TypedDict):
    a: int
    b: typing.NotRequired[str]


class OldPart(Old, total=False):
    c: float
    d: typing.Required[list[Old]]


class OldTree(typing.TypedDict):
    value: int
    children: "list[OldTree]"


class New(typing_extensions.TypedDict):
    a: int
    b: typing_extensions.NotRequired[str]


def shape(func: Callable[..., Any]) -> Shape:
    return shape_of(func, read_signature(func), {})


def taking(hint: Any, default: Any = EMPTY) -> Callable[..., Any]:
    def f(x): ...

    f.__annotations__ = {} if hint is EMPTY else {"x": hint}
    f.__defaults__ = None if default is EMPTY else (default,)
    return f


def schema_of(hint: Any, default: Any = EMPTY) -> Any:
    return shape(taking(hint, default)).schema["properties"]["x"]


def read(hint: Any, text: str) -> Any:
    return Tool(taking(hint), name="f").read(f'{{"x": {text}}}')["x"]


# -- every ordinary type


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (EMPTY, {}),
        (object, {}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (typing.List[int], {"type": "array", "items": {"type": "integer"}}),  # noqa: UP006
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (Iterable[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Alias, {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "const": "a"}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Annotated[int, Field(ge=1, description="How many.")],
            {"type": "integer", "minimum": 1, "description": "How many."},
        ),
        (Annotated[str, Field(min_length=1), "Words."], {"type": "string", "minLength": 1, "description": "Words."}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (time, {"type": "string", "format": "time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "path"}),
        (bytes, {"type": "string", "format": "binary"}),
        (UserId, {"type": "integer"}),
    ],
    ids=str,
)
def test_a_type_hint_is_said_in_json_schema(hint, schema):
    assert schema_of(hint) == schema


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (datetime, '"2026-01-02T03:04:05"', datetime(2026, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        (date, '"2026-01-02"', date(2026, 1, 2)),
        (timedelta, '"PT1M"', timedelta(minutes=1)),
        (Decimal, '"1.10"', Decimal("1.10")),
        (UUID, '"00000000-0000-0000-0000-000000000000"', UUID(int=0)),
        (Path, '"a/b"', Path("a/b")),
        (bytes, '"abc"', b"abc"),
        (set[int], "[1, 1]", {1}),
        (frozenset[int], "[1]", frozenset({1})),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (UserId, "5", 5),
        (Colour, '"red"', Colour.RED),
        (Level, "2", Level.HIGH),
        (Line, '{"sku": "A"}', Line(sku="A")),
        (Box[int], '{"content": 1}', Box[int](content=1)),
        (Point, '{"x": 1, "tags": ["a"]}', Point(1, tags=["a"])),
        (dict[str, Point], '{"k": {"x": 1}}', {"k": Point(1)}),
        (New, '{"a": "1"}', {"a": 1}),
        (Old, '{"a": "1", "b": "x"}', {"a": 1, "b": "x"}),
        (list[Old] | None, '[{"a": 1}]', [{"a": 1}]),
        (OldPart, '{"a": 1, "d": [{"a": "2"}]}', {"a": 1, "d": [{"a": 2}]}),
        (
            OldTree,
            '{"value": "1", "children": [{"value": 2, "children": []}]}',
            {"value": 1, "children": [{"value": 2, "children": []}]},
        ),
        (
            Annotated[list[OldTree], Field(max_length=1)],
            '[{"value": 1, "children": []}]',
            [{"value": 1, "children": []}],
        ),
        (
            Tree,
            '{"value": 1, "children": [{"value": 2}]}',
            Tree(value=1, children=[Tree(value=2)]),
        ),
    ],
    ids=str,
)
def test_a_function_is_given_what_its_hint_says(hint, text, value):
    found = read(hint, text)
    assert found == value
    assert type(found) is type(value)


def test_models_become_definitions_with_their_descriptions():
    schema = shape(taking(Order)).schema
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Order"}
    line = schema["$defs"]["Line"]
    assert line["description"] == "A line of an order."
    assert line["properties"]["sku"] == {"type": "string", "description": "The article.", "pattern": "^[A-Z]+$"}
    assert line["properties"]["count"] == {"type": "integer", "default": 1}
    assert line["required"] == ["sku"]


def test_recursive_types_refer_to_themselves():
    for hint in (Tree, OldTree):
        schema = shape(taking(hint)).schema
        children = schema["$defs"][hint.__name__]["properties"]["children"]
        assert children["items"] == {"$ref": f"#/$defs/{hint.__name__}"}


def test_members_that_a_typed_dict_may_lack_are_not_required():
    definitions = shape(taking(OldPart)).schema["$defs"]
    assert definitions["OldPart"]["required"] == ["a", "d"]
    assert definitions["Old"]["required"] == ["a"]


def test_no_schema_has_titles_that_only_repeat_a_name():
    def f(order: Order, point: Point, box: Box[int], old: Old, colour: Colour): ...

    assert "title" not in json.dumps(shape(f).schema)


def test_properties_keep_the_functions_order():
    def f(z: int, a: Order, m: str = "", *, b: int = 1): ...

    assert list(shape(f).schema["properties"]) == ["z", "a", "m", "b"]
    assert shape(f).schema["required"] == ["z", "a"]


# -- defaults


@pytest.mark.parametrize(
    ("hint", "default", "shown"),
    [
        (str, "c", "c"),
        (int, 0, 0),
        (bool, False, False),
        (list[int], [1], [1]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int | None, None, None),
        (Colour, Colour.RED, "red"),
        (Point, Point(1), {"x": 1, "y": 0, "tags": []}),
        (Line, Line(sku="A"), {"sku": "A", "count": 1}),
        (set[int], {1}, [1]),
        (Path, Path("a"), "a"),
        (float, 0.5, 0.5),
        (EMPTY, "x", "x"),
        (int, Field(3, ge=1), 3),
    ],
    ids=str,
)
def test_a_default_is_shown_and_makes_it_optional(hint, default, shown):
    schema = shape(taking(hint, default)).schema
    assert schema["properties"]["x"]["default"] == shown
    assert schema["required"] == []


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize("default", [math.inf, math.nan, object(), b"\xff", "\ud800", [math.inf], len, CIRCULAR])
@pytest.mark.parametrize("hint", [Any, EMPTY, Annotated[Any, Field()]])
def test_a_default_that_json_cannot_carry_is_left_out_and_still_optional(hint, default):
    schema = shape(taking(hint, default)).schema
    assert "default" not in schema["properties"]["x"]
    assert schema["required"] == []
    json.dumps(schema, allow_nan=False).encode()


@pytest.mark.parametrize("hint", [float, Annotated[float, Field(gt=0)]])
def test_an_infinite_default_is_left_to_the_function(hint):
    schema = shape(taking(hint, math.inf)).schema
    assert "default" not in schema["properties"]["x"]


def test_a_default_is_not_aliased():
    default = {"a": [1]}
    schema_of(dict, default)["default"]["a"].append(2)
    assert default == {"a": [1]}


def test_a_default_of_none_makes_its_type_nullable():
    assert schema_of(int, None) == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert schema_of(Line, None)["anyOf"] == [{"$ref": "#/$defs/Line"}, {"type": "null"}]
    assert schema_of(Any, None) == {"default": None}
    assert schema_of(Literal["a", None], None)["enum"] == ["a", None]  # noqa: PYI061  # as some write it


# -- every kind of callable


class Kit:
    def method(self, x: int, y: str = "a") -> None: ...

    @classmethod
    def of_class(cls, x: int, y: str = "a") -> None: ...

    @staticmethod
    def static(x: int, y: str = "a") -> None: ...

    def __call__(self, x: int, y: str = "a") -> None: ...


def plain(x: int, y: str = "a") -> None: ...


async def awaited(x: int, y: str = "a") -> None: ...


def logged(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper


def after_bytes(z: bytes, x: int, y: str = "a") -> None: ...


@pytest.mark.parametrize(
    "func",
    [
        plain,
        awaited,
        Kit().method,
        Kit.of_class,
        Kit().of_class,
        Kit.static,
        Kit(),
        functools.partial(after_bytes, b""),
        logged(plain),
        logged(logged(awaited)),
        logged(Kit().method),
        eval("lambda x, y='a': None"),  # noqa: S307
    ],
)
def test_every_kind_of_callable_is_read(func):
    schema = shape(func).schema
    assert list(schema["properties"]) == ["x", "y"]
    assert schema["required"] == ["x"]
    assert schema["properties"]["y"]["default"] == "a"


def test_a_partial_shows_what_is_left():
    schema = shape(functools.partial(plain, y="b")).schema
    assert schema["properties"] == {"x": {"type": "integer"}, "y": {"type": "string", "default": "b"}}
    assert list(shape(functools.partial(plain, 1)).schema["properties"]) == ["y"]
    assert list(shape(functools.partial(Kit().method, 1)).schema["properties"]) == ["y"]


def test_a_signature_that_is_given_wins():
    def f(*args: Any, **kwargs: Any): ...

    f.__signature__ = inspect.signature(plain)
    assert list(shape(f).schema["properties"]) == ["x", "y"]


def test_a_signature_says_what_cannot_be_named():
    def f(a, b, /, c: int, *rest: int, d: int = 1, **others: int): ...

    signature = read_signature(f)
    assert [p.name for p in signature.parameters] == ["c", "d"]
    assert (signature.positional_only, signature.variadic) == (("a", "b"), ("*rest", "**others"))
    assert signature.takes_any
    wrapped = read_signature(logged(f))
    assert wrapped == signature


@pytest.mark.parametrize("func", [plain, after_bytes, Kit.method, logged, read_signature, taking])
def test_the_quick_reading_is_what_inspect_reads(func):
    found = inspect.signature(func).parameters.values()
    assert read_signature(func).parameters == tuple(Parameter(p.name, p.annotation, p.default) for p in found)


def test_what_has_no_signature_is_a_signature_error():
    with pytest.raises(ToolSignatureError, match="no readable signature"):
        read_signature(type("Odd", (), {"__call__": 5})())
    with pytest.raises(ToolSignatureError):
        read_signature(max)


# -- hints as text


def test_hints_as_text_are_resolved():
    def f(a: "int", b: "list[Line]", c: "Optional[Colour]" = None, d: list["Point"] = []): ...  # noqa: B006, UP045

    schema = shape(f).schema
    assert schema["properties"]["a"] == {"type": "integer"}
    assert schema["properties"]["b"]["items"] == {"$ref": "#/$defs/Line"}
    assert schema["properties"]["c"]["anyOf"] == [{"$ref": "#/$defs/Colour"}, {"type": "null"}]
    assert schema["properties"]["d"]["items"] == {"$ref": "#/$defs/Point"}


def test_names_of_an_enclosing_function_are_found_when_the_function_uses_them():
    class Local(BaseModel):
        a: int

    def f(x: "Local | None") -> Any:
        return Local, later

    schema = shape(f).schema
    assert "Local" in schema["$defs"]

    def later() -> None: ...


def test_a_builtin_name_that_a_module_gives_another_meaning_is_that():
    namespace: dict[str, Any] = {"int": Colour}
    exec("def f(x: 'int'): ...", namespace)
    assert shape(namespace["f"]).schema["properties"]["x"] == {"$ref": "#/$defs/Colour"}


def test_a_function_without_a_module_is_read():
    namespace: dict[str, Any] = {"__name__": "no_such_module", "Line": Line}
    exec("def f(x: 'list[Line]', y: 'int' = 1): ...", namespace)
    assert list(shape(namespace["f"]).schema["properties"]) == ["x", "y"]


@pytest.mark.parametrize("hint", ["Missing", "list[Missing]", "not a hint", "1 +", "", "Line.missing"])
def test_a_hint_that_cannot_be_resolved_is_a_signature_error(hint):
    with pytest.raises(ToolSignatureError, match="type hint of"):
        shape(taking(hint))


class NoType:
    """Nothing pydantic can validate."""


@pytest.mark.parametrize("hint", [NoType, list[NoType], NoType | None, Callable[[int], int], dict[NoType, int], 5])
def test_a_type_that_no_schema_can_express_is_a_signature_error(hint):
    with pytest.raises(ToolSignatureError):
        shape(taking(hint))


# -- the context


def first(context: ToolContext, x: int): ...


def middle(x: int, context: ToolContext[dict[str, Any]], y: int = 1): ...


def last(x: int, context: Ctx | None = None): ...


def optional(x: int, context: Optional[ToolContext[Any]] = None): ...  # noqa: UP045


def annotated(x: int, *, context: Annotated[ToolContext[int], "never shown"]): ...


def as_text(x: int, context: "Ctx[list[str]]"): ...


def beside_a_model(x: Line, context: Ctx): ...


@pytest.mark.parametrize("func", [first, middle, last, optional, annotated, as_text, beside_a_model])
def test_the_context_is_injected_wherever_it_stands_and_never_shown(func):
    assert shape(func).context == context_of(func) == "context"
    assert "context" not in json.dumps(shape(func).schema).lower()
    seen = {}
    tool = Tool(logged(func), name="f")
    spied = tool.replace(func=functools.wraps(func)(lambda **kwargs: seen.update(kwargs)))
    spied.call('{"x": {"sku": "A"}}' if func is beside_a_model else '{"x": 1}')
    assert isinstance(seen["context"], ToolContext)


def test_a_model_cannot_give_a_context():
    with pytest.raises(ValueError, match="context: not a parameter"):
        Tool(first).read('{"x": 1, "context": {}}')


def test_only_one_parameter_can_be_the_context():
    def f(a: ToolContext, b: ToolContext): ...

    with pytest.raises(ToolSignatureError, match="a and b"):
        shape(f)


def test_a_function_without_a_context_has_none():
    assert context_of(plain) is None
    assert context_of(taking("Missing")) is None
    assert context_of(max) is None


# -- descriptions


def google(a: int, b: str = "", *, c: Line | None = None):
    """Do it.

    Args:
        a: The first.
        b (str, optional): The "second", with `ticks`:
            and a second line.
        c: The third.
    """


def numpy(a: int, b: str = "", *, c: Line | None = None):
    """Do it.

    Parameters
    ----------
    a : int
        The first.
    b : str, optional
        The "second", with `ticks`:
        and a second line.
    c
        The third.
    """


def sphinx(a: int, b: str = "", *, c: Line | None = None):
    """Do it.

    :param a: The first.
    :param str b: The "second", with `ticks`:
        and a second line.
    :param c: The third.
    """


@pytest.mark.parametrize("func", [google, numpy, sphinx])
def test_docstrings_of_every_style_describe_the_parameters(func):
    tool = Tool(func)
    assert tool.description == "Do it."
    descriptions = {name: node.get("description") for name, node in tool.input_schema["properties"].items()}
    assert descriptions == {"a": "The first.", "b": 'The "second", with `ticks`: and a second line.', "c": "The third."}


def test_a_hints_own_description_wins_over_the_docstring():
    def f(a: Annotated[int, "From the hint."], b: Annotated[int, Field(description="From the field.")] = 1):
        """Do it.

        Args:
            a: From the docstring.
            b: From the docstring.
            context: Nothing of that name.
        """

    properties = Tool(f).input_schema["properties"]
    assert [node["description"] for node in properties.values()] == ["From the hint.", "From the field."]


# -- the direct route is pydantic's

PLAIN = [
    str,
    int,
    float,
    bool,
    None,
    Any,
    list,
    dict,
    list[int],
    list[str],
    list[float],
    list[Any],
    list[list[int]],
    list[int | None],
    dict[str, int],
    dict[str, Any],
    dict[str, list[str]],
    list[dict[str, float | None]],
    Literal["a"],
    Literal["a", "b"],
    Literal["1", "true"],
    Literal[1],
    Literal[0, 1, 2],
    Literal[True],
    Literal[True, False],
    int | None,
    str | None,
    bool | None,
    Any | None,
    int | str,
    str | int,
    int | float,
    bool | int | str | None,
    Literal["a", "b"] | None,
    Literal["a"] | int,
    list[int] | str,
    list[int] | dict[str, int] | None,
    Annotated[int, "How many."],
    Annotated[list[str] | None, "Names."],
    list[Annotated[int, "One."]],
]
INPUTS = [
    "null true false 0 1 2 -1 5 1.0 5.0 1.5 -0.0 1e2 1e-3 123456789012345678901234567890 0.1",
    '"" "a" "b" "c" "A" "1" "0" "5" "-5" "5.0" "1.5" "1e2" " 5 " "5_0" "+5" "0x1" "true" "false" "yes" "off" "T"',
    '"null" "None" "é" "\\u0061" "\\n" "[1]" "{}" "2026-01-01" "\\ud83d\\ude00"',
    '[] [1] ["1"] [1,"a"] [null] [[1]] [["1"]] [[]] [1.5] [true] {} [{}] [{"a":1}] [{"a":null}]',
    '{"a":1} {"a":"1"} {"a":null} {"a":[]} {"a":["x"]} {"a":1.5} {"a":{"b":1}} {"":1} {"a":1,"b":"x"}',
]
TEXTS = [text for row in INPUTS for text in row.split(" ")]


def outcome(core: Any, text: str) -> Any:
    try:
        found = SchemaValidator(core).validate_json(f'{{"x": {text}}}')
    except ValidationError as error:
        return [(e["type"], e["loc"], e["msg"]) for e in error.errors(include_url=False)]
    return repr(found), [type(value) for value in found.values()]


@pytest.mark.parametrize("default", [EMPTY, None, "a", 1], ids=["required", "None", "text", "number"])
@pytest.mark.parametrize("hint", PLAIN, ids=str)
def test_the_direct_route_says_and_does_what_pydantic_would(hint, default):
    parameters = [Parameter("x", hint, default), Parameter("y", int, 1)]
    direct = _directly(parameters, None)
    schema, core = by_pydantic("f", parameters)
    assert direct.schema == schema
    assert list(direct.schema["properties"]) == list(schema["properties"])
    if default is EMPTY:
        for text in TEXTS:
            assert outcome(direct.core, text) == outcome(core, text), text
        for text in ('1, "x": 2', '1, "z": 2', '1, "y": "x"', '1, "y": null'):
            assert outcome(direct.core, text) == outcome(core, text), text


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[1]", '{"y": 1}', "{} {}", '{"x": 1, "x": "\\ud800"}'])
def test_both_routes_refuse_the_same_texts(text):
    parameters = [Parameter("x", int, EMPTY), Parameter("y", int, 1)]
    _, core = by_pydantic("f", parameters)

    def errors(core: Any) -> Any:
        with pytest.raises(ValidationError) as caught:
            SchemaValidator(core).validate_json(text)
        return [(e["type"], e["loc"]) for e in caught.value.errors()]

    assert errors(_directly(parameters, None).core) == errors(core)


@pytest.mark.parametrize(
    "hint",
    [
        Line,
        Colour,
        datetime,
        Annotated[int, Field(ge=1)],
        tuple[int, int],
        set[int],
        dict[int, int],
        Literal["a", 1],
        bytes,
    ],
)
def test_whatever_is_not_plain_is_left_to_pydantic(hint):
    with pytest.raises(_NotPlainError):
        _directly([Parameter("x", hint, EMPTY)], None)


def test_both_routes_leave_defaults_to_the_function():
    for hint in (int, Annotated[int, Field(ge=0)]):
        assert SchemaValidator(shape(taking(hint, 5)).core).validate_json("{}") == {}
