import asyncio
import copy
import dataclasses
import functools
import json
import math
import threading
import warnings
import xml.etree.ElementTree as ET
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolcrib.errors import (
    ToolArgumentError,
    ToolcribWarning,
    ToolExecutionError,
    ToolNameError,
    ToolSignatureError,
)
from toolcrib.tools import Tool, tool, tool_from_function
from toolcrib.toolset import Toolset
from toolcrib.types import ToolContext, ToolParameter

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city."},
        "units": {"type": "string", "enum": ["c", "f"], "default": "c"},
    },
    "required": ["city"],
}


class Query(BaseModel):
    text: str
    limit: int = 10


def weather(city: str, units: Literal["c", "f"] = "c") -> str:
    """Get the "current" weather.

    It is measured, not forecast.

    Args:
        city: City name, e.g. "Paris".
        units: The unit to answer in.
    """
    return f"14 {units} in {city}"


def search(query: Query, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
    """Search."""
    return query, deep


async def fetch(url: str, retries: int | None = None) -> str:
    """Fetch."""
    await asyncio.sleep(0)
    return f"{url} {retries}"


def contextual(x: int, context: ToolContext[Any]) -> Any:
    """Look."""
    return x, type(context)


class Kit:
    """A kit."""

    def __init__(self, key: str = "k") -> None:
        self.key = key

    @tool
    def look_up(self, sku: str, count: int = 1) -> str:
        """Look up.

        Args:
            sku: The article.
        """
        return f"{self.key} {sku} {count}"

    @tool(name="kit.order", effect="write")
    async def order(self, sku: str) -> str:
        """Order."""
        await asyncio.sleep(0)
        return f"{self.key} ordered {sku}"

    def undecorated(self, x: int) -> tuple[str, int]:
        """Do it."""
        return self.key, x

    @classmethod
    @tool
    def of_class(cls, x: int) -> str:
        """Of the class."""
        return f"{cls.__name__} {x}"

    @staticmethod
    @tool
    def static(x: int) -> int:
        """Static."""
        return x

    def __call__(self, x: int) -> int:
        """Call me."""
        return x


def as_bytes(made: Tool) -> bytes:
    return json.dumps(made.definition()).encode()


def copied(func: Any) -> Any:
    """The same function again, so that a mark on one is not one on the other."""
    again = type(func)(func.__code__, func.__globals__, func.__name__, func.__defaults__, func.__closure__)
    again.__annotations__, again.__doc__ = func.__annotations__, func.__doc__
    return again


# -- every door


DOORS = {
    "Tool": Tool,
    "wrap": Tool.wrap,
    "tool_from_function": tool_from_function,
    "decorator": lambda func: tool(func).__tool__,
    "decorator with options": lambda func: tool()(func).__tool__,
    "Toolset": lambda func: Toolset([func])[func.__name__],
    "Toolset of a decorated one": lambda func: Toolset([tool(func)])[func.__name__],
    "wrap of a Tool": lambda func: Tool.wrap(Tool(func)),
    "wrap of a decorated one": lambda func: Tool.wrap(tool(func)),
    "replace": lambda func: Tool(func, timeout=1).replace(timeout=None),
    "replace anew": lambda func: Tool(func, strict=True).replace(strict=False),
    "partial": lambda func: Tool(functools.partial(func)),
}


@pytest.mark.parametrize("func", [weather, search, fetch, contextual])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_every_door_gives_the_same_tool(door, func):
    made = door(copied(func))
    assert as_bytes(made) == as_bytes(Tool(func))
    assert made.is_async is (func is fetch)


def test_a_method_is_the_same_tool_through_every_door():
    kit = Kit()
    found = [
        Tool.wrap(kit.look_up),
        tool_from_function(kit.look_up),
        Toolset([kit.look_up])["look_up"],
        Kit.look_up.__tool__,  # pyright: ignore[reportFunctionMemberAccess]  # what @tool attaches
    ]
    assert len({as_bytes(one) for one in found}) == 1
    assert list(found[0].input_schema["properties"]) == ["sku", "count"]


def test_the_definition_is_stable_and_complete():
    assert Tool(weather, strict=True).definition() == {
        "name": "weather",
        "description": 'Get the "current" weather.\n\nIt is measured, not forecast.',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": 'City name, e.g. "Paris".'},
                "units": {
                    "type": "string",
                    "enum": ["c", "f"],
                    "default": "c",
                    "description": "The unit to answer in.",
                },
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    }


def test_the_schema_is_made_once():
    made = Tool(search)
    assert made.input_schema is made.input_schema
    assert made.replace(timeout=5).input_schema is made.input_schema


@pytest.mark.anyio
async def test_preparing_makes_the_schema_ready():
    made = Tool(weather)
    await made.prepare()
    assert "input_schema" in vars(made)


# -- the decorator


def test_the_decorator_returns_the_very_same_function():
    def f(x: int) -> int:
        """Double."""
        return 2 * x

    before = dict(vars(f))
    assert tool(f) is f
    assert tool(name="g", description="d")(f) is f
    assert f(4) == 8
    assert vars(f).keys() - before.keys() == {"__tool__", "__tool_spec__", "__tool_is_async__"}


def test_the_spec_is_in_openai_form():
    def letter_counter(word: str, letter: str) -> int:
        """Count occurrences of a letter in a word."""
        return word.count(letter)

    tool(letter_counter)
    assert letter_counter.__tool_spec__ == {
        "type": "function",
        "function": {
            "name": "letter_counter",
            "description": "Count occurrences of a letter in a word.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string"}, "letter": {"type": "string"}},
                "required": ["word", "letter"],
            },
        },
    }
    strict = tool(strict=True)(copied(letter_counter)).__tool_spec__["function"]
    assert (strict["strict"], strict["parameters"]["additionalProperties"]) == (True, False)


def test_whether_it_is_async_is_recorded():
    assert tool(copied(fetch)).__tool_is_async__ is True
    assert tool(copied(weather)).__tool_is_async__ is False


def test_the_decorator_takes_every_option_of_a_tool():
    made = tool(name="n", description="d", strict=True, timeout=3, effect="read", thread=False)(
        copied(weather)
    ).__tool__
    assert (made.name, made.description, made.strict, made.timeout) == ("n", "d", True, 3)
    assert (made.effect, made.thread) == ("read", False)


def test_a_decorator_around_a_tool_is_not_bypassed():
    seen = []

    def logged(func: Any) -> Any:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return func(*args, **kwargs)

        return wrapper

    outside, inside = logged(tool(copied(weather))), tool(logged(copied(weather)))
    for func in (outside, inside):
        made = Toolset([func])["weather"]
        assert made.call({"city": "Paris"}) == "14 c in Paris"
        assert as_bytes(made) == as_bytes(Tool(weather))
    assert seen == [{"city": "Paris"}] * 2


def test_a_decorated_function_keeps_its_options_wherever_it_goes():
    func = tool(name="n", effect="write")(copied(weather))
    for made in (Tool.wrap(func), tool_from_function(func), Toolset([func])["n"]):
        assert (made.name, made.effect) == ("n", "write")
    assert Tool.wrap(func, name="other").effect == "write"


# -- methods


@pytest.mark.parametrize("door", [Tool.wrap, tool_from_function, lambda method: next(iter(Toolset([method])))])
def test_a_decorated_method_works_through_its_instance(door):
    one, two = Kit("one"), Kit("two")
    assert door(one.look_up).call('{"sku": "A", "count": "2"}') == "one A 2"
    assert door(two.look_up).call('{"sku": "A"}') == "two A 1"
    assert door(one.order).call('{"sku": "A"}') == "one ordered A"
    assert (door(one.order).name, door(one.order).effect) == ("kit.order", "write")


def test_a_decorated_method_is_still_a_method():
    assert Kit("k").look_up("A", count=3) == "k A 3"
    assert asyncio.run(Kit("k").order("A")) == "k ordered A"


def test_a_decorated_method_without_its_instance_is_a_clear_error():
    with pytest.raises(ToolExecutionError, match="without its instance"):
        Kit.look_up.__tool__.call('{"sku": "A"}')


def test_class_and_static_methods_are_tools():
    class Special(Kit): ...

    assert Tool.wrap(Special.of_class).call('{"x": 1}') == "Special 1"
    assert Tool.wrap(Special().of_class).call('{"x": 1}') == "Special 1"
    assert Tool.wrap(Kit.static).call('{"x": 1}') == 1
    assert Tool.wrap(Kit().static).call('{"x": 1}') == 1
    assert list(Tool.wrap(Kit.of_class).input_schema["properties"]) == ["x"]


def test_bound_methods_partials_and_callable_objects_are_tools():
    assert tool_from_function(Kit("k").undecorated).call('{"x": "5"}') == ("k", 5)
    assert tool_from_function(functools.partial(weather, units="f")).call('{"city": "Rome"}') == "14 f in Rome"
    called = tool_from_function(Kit())
    assert (called.name, called.description, called.call('{"x": 1}')) == ("Kit", "Call me.", 1)
    partial = tool_from_function(functools.partial(Kit("k").undecorated, 3))
    assert (partial.name, partial.description, partial.call()) == ("undecorated", "Do it.", ("k", 3))


def test_private_names_and_backticks_are_fine():
    def _look_up(x: int):
        """Use `x` here."""

    assert (Tool(_look_up).name, Tool(_look_up).description) == ("_look_up", "Use `x` here.")


# -- what cannot be a tool


def variadic(*args: int): ...


def keywords(**kwargs: int): ...


def unhinted(x, y=1): ...


def by_position(x: int, /, y: int = 1): ...


@pytest.mark.parametrize("func", [variadic, keywords, unhinted])
@pytest.mark.parametrize("door", [tool, tool(), tool_from_function])
def test_the_explicit_doors_refuse_what_a_model_cannot_be_told(door, func):
    with pytest.raises(ToolSignatureError, match=func.__name__) as caught:
        door(func)
    assert isinstance(caught.value, TypeError)
    assert not hasattr(func, "__tool__")


@pytest.mark.parametrize("func", [variadic, keywords, unhinted])
@pytest.mark.parametrize("door", [Tool, Tool.wrap, lambda func: Toolset([func])])
def test_the_other_doors_warn(door, func):
    with pytest.warns(ToolcribWarning, match=func.__name__) as caught:
        door(func)
    assert caught[0].filename == __file__


def test_those_are_the_only_two_cases():
    def odd(a: Any, b=None, *, c=1, d: "Any" = ...): ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tool(odd) is odd


@pytest.mark.parametrize("door", [tool, tool_from_function, Tool, Tool.wrap])
def test_parameters_by_position_only_are_refused(door):
    with pytest.raises(ToolSignatureError, match="x by position only"):
        door(by_position)


def test_a_hint_of_nothing_is_refused_at_decoration():
    class Nothing: ...

    def f(x: Nothing): ...

    with pytest.raises(ToolSignatureError):
        tool(f)
    assert not hasattr(f, "__tool__")


@pytest.mark.parametrize("thing", [5, "weather", None, object(), [weather], {}])
@pytest.mark.parametrize("door", [Tool.wrap, tool_from_function])
def test_what_cannot_be_called_is_refused(door, thing):
    with pytest.raises(ToolSignatureError):
        door(thing)


@pytest.mark.parametrize("name", ["", "  ", "\n", 5, b"x"])
def test_a_tool_needs_a_name(name):
    with pytest.raises(ToolNameError, match="needs a name"):
        Tool(weather, name=name)
    with pytest.raises(ToolNameError):
        Tool(weather).replace(name=name)
    with pytest.raises(ToolNameError):
        Tool()


def test_a_function_with_a_parameter_of_every_odd_name_works():
    def f(self: int, cls: int, name: int, arguments: int, context: int, func: int, limits: int):
        return self + cls + name + arguments + context + func + limits

    names = ("self", "cls", "name", "arguments", "context", "func", "limits")
    made = Tool(f)
    assert tuple(made.input_schema["properties"]) == names
    assert made.call(dict.fromkeys(names, 1)) == 7


# -- hints that come later


def test_a_class_that_comes_later_is_found_when_it_is_needed():
    namespace: dict[str, Any] = {"tool": tool, "BaseModel": BaseModel}
    exec("@tool\ndef f(x: 'Late') -> int:\n    return x.n\n", namespace)
    exec("class Late(BaseModel):\n    n: int\n", namespace)
    assert namespace["f"].__tool__.call('{"x": {"n": 3}}') == 3


def test_a_name_that_is_given_its_value_later_does_not_matter():
    @tool
    def f(x: "int | None") -> str:
        return helper(x)

    def helper(x: Any) -> str:
        return f"helped {x}"

    assert Tool.wrap(f).call('{"x": 1}') == "helped 1"


# -- options


@pytest.mark.parametrize("mode", ["auto", "", None, "SIGNATURE", 5])
def test_an_unknown_mode_is_refused(mode):
    with pytest.raises(ValueError, match="mode"):
        Tool(weather, mode=mode)


@pytest.mark.parametrize("mode", ["hybrid", "llm"])
def test_a_mode_that_needs_a_model_needs_one(mode):
    with pytest.raises(ValueError, match=r"mode|schema_llm"):
        Tool(weather, mode=mode)


@pytest.mark.parametrize(
    "options", [{"effect": "delete"}, {"effect": ["read"]}, {"timeout": -1}, {"timeout": math.nan}]
)
def test_options_that_make_no_sense_are_refused_at_every_door(options):
    (name,) = options
    doors = [
        lambda: Tool(weather, **options),
        lambda: Tool.wrap(weather, **options),
        lambda: Tool.wrap(Tool(weather), **options),
        lambda: tool_from_function(weather, **options),
        lambda: tool(**options)(copied(weather)),
        lambda: Tool.from_schema("w", "d", WEATHER, **options),
        lambda: Tool(weather).replace(**options),
    ]
    for door in doors:
        with pytest.raises(ValueError, match=name):
            door()


def test_func_is_the_only_positional_parameter():
    with pytest.raises(TypeError):
        Tool(weather, "name")
    with pytest.raises(TypeError):
        Tool(weather, nonsense=1)
    with pytest.raises(TypeError):
        Tool(weather).replace(nonsense=1)


def test_description_may_be_empty_on_purpose():
    assert Tool(weather, description="").description == ""
    assert Tool(weather, description="").replace(strict=True).description == ""
    assert Tool(lambda x=1: x, name="f").description == ""


# -- a schema from elsewhere


def test_a_foreign_schema_is_kept_verbatim():
    schema = {**WEATHER, "x-vendor": {"k": [1]}, "$comment": "as it came", "additionalProperties": True}
    made = Tool.from_schema("w", "d", schema, lambda **k: k)
    assert made.input_schema == schema
    assert json.dumps(made.input_schema) == json.dumps(schema)
    assert (made.name, made.description, made.strict) == ("w", "d", False)


def test_a_foreign_schema_is_neither_aliased_nor_changed():
    schema = copy.deepcopy(WEATHER)
    made = Tool.from_schema("w", "d", schema, lambda **k: k, strict=True)
    assert made.input_schema["additionalProperties"] is False
    assert schema == WEATHER
    schema["properties"]["city"]["type"] = "integer"
    schema["required"].append("units")
    assert made.input_schema["properties"]["city"]["type"] == "string"
    assert made.input_schema["required"] == ["city"]
    assert made.call({"city": "Paris"}) == {"city": "Paris"}


def test_a_dispatcher_gets_the_validated_arguments():
    def weather_dispatch(**kwargs: Any) -> str:
        return f"weather for {kwargs['city']}"

    made = Tool.from_schema(name="get_weather", description="Weather.", parameters=WEATHER, func=weather_dispatch)
    assert made.call('{"city": "Paris"}') == "weather for Paris"
    for wrong in ({}, {"city": 5}, {"city": "Paris", "units": "k"}):
        with pytest.raises(ToolArgumentError):
            made.call(wrong)


def test_strict_closes_and_so_refuses_strangers():
    made = Tool.from_schema("w", "d", WEATHER, lambda **k: k)
    assert made.call({"city": "P", "zz": 1}) == {"city": "P", "zz": 1}
    with pytest.raises(ToolArgumentError, match="zz"):
        made.replace(strict=True).call({"city": "P", "zz": 1})


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "array", "items": {}}, {"properties": []}])
def test_a_schema_of_something_else_is_refused_when_the_tool_is_made(schema):
    with pytest.raises(ToolSignatureError):
        Tool.from_schema("w", "d", schema)


def test_a_bottomless_schema_is_refused():
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(ToolSignatureError, match="deep"):
        Tool.from_schema("w", "d", schema)


def test_a_function_with_a_schema_may_have_a_context():
    def f(context: ToolContext[Any], **kwargs: Any) -> Any:
        return type(context), kwargs

    made = Tool.from_schema("f", "d", WEATHER, f)
    assert made.call({"city": "P"}) == (ToolContext, {"city": "P"})
    assert made.input_schema == WEATHER


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"description": "other"},
        {"timeout": 5},
        {"effect": "read"},
        {"origin": "mcp:fs", "original_name": "w"},
        {"thread": False},
        {"func": lambda **k: k},
        {"returns_envelope": True},
        {"output_schema": {"type": "object"}},
        {"validate": False},
    ],
)
def test_replacing_anything_keeps_a_verbatim_schema(changes):
    schema = {**WEATHER, "$comment": "as it came"}
    made = Tool.from_schema("w", "d", schema, lambda **k: k).replace(origin="mcp:a", original_name="o")
    changed = made.replace(**changes).replace(strict=True).replace(strict=False)
    assert json.dumps(changed.input_schema) == json.dumps(schema)
    for name, value in changes.items():
        assert getattr(changed, name) == value
    kept = {"origin": "mcp:a", "original_name": "o", "name": "w", "description": "d"} | changes
    assert {name: getattr(changed, name) for name in kept} == kept


def test_replacing_does_not_change_the_tool_itself():
    made = Tool(weather)
    before = dict(vars(made))
    made.replace(name="other", strict=True, timeout=3, description="d")
    assert {key: vars(made)[key] for key in before} == before
    assert made.replace(name="other").name == "other"
    with pytest.raises(ToolArgumentError, match="'other'"):
        made.replace(name="other").read("{}")


def test_replacing_the_function_reads_the_new_one():
    made = Tool(weather, effect="read").replace(func=fetch)
    assert (made.name, made.description, made.is_async, made.effect) == ("weather", "Fetch.", True, "read")
    assert list(made.input_schema["properties"]) == ["url", "retries"]


# -- parameters in the author's words


def inventory() -> Tool:
    return Tool(
        name="check_inventory",
        description="Stock.",
        parameters=[
            ToolParameter("product_id", "str", "The number.", required=True, examples=["PRD-99"]),
            ToolParameter("warehouse", "str", default="New York"),
        ],
    )


def test_a_declared_tool_can_be_shown():
    made = inventory()
    assert made.input_schema == {
        "type": "object",
        "properties": {
            "product_id": {"type": "string", "description": "The number.", "examples": ["PRD-99"]},
            "warehouse": {"type": "string", "default": "New York"},
        },
        "required": ["product_id"],
    }
    assert [p.name for p in made.parameters] == ["product_id", "warehouse"]
    assert made.parameters[1] == ToolParameter("warehouse", "str", default="New York")
    assert (made.func, made.is_async) == (None, False)


@pytest.mark.parametrize(
    "call", [lambda t: t(), lambda t: t.call({"product_id": "a"}), lambda t: asyncio.run(t.acall({"product_id": "a"}))]
)
def test_a_declared_tool_cannot_be_called(call):
    with pytest.raises(ToolExecutionError, match="'check_inventory' is only declared"):
        call(inventory())


def test_a_declared_tool_may_get_its_function_later():
    made = inventory().replace(func=lambda **kwargs: kwargs)
    assert made.call({"product_id": "a"}) == {"product_id": "a"}
    assert made.input_schema == inventory().input_schema


def test_the_parameters_of_a_function_are_listed():
    city, units = Tool(weather).parameters
    assert city == ToolParameter("city", "str", 'City name, e.g. "Paris".', required=True)
    assert units == ToolParameter("units", '"c" | "f"', "The unit to answer in.", default="c", options=["c", "f"])


def test_an_authors_facts_are_added_to_the_signature():
    facts = [ToolParameter("city", "City", "Where.", examples=["Rome"], display_name="City", source="context")]
    made = Tool(weather, parameters=facts)
    assert made.input_schema["properties"]["city"] == {"type": "string", "description": "Where.", "examples": ["Rome"]}
    assert made.input_schema["required"] == ["city"]
    assert made.parameters[0] == dataclasses.replace(facts[0], required=True)


def test_options_of_an_author_are_enforced():
    def f(unit: str, n: int = 1) -> Any:
        return unit, n

    made = Tool(f, parameters=[ToolParameter("unit", options=["c", "f"])])
    assert made.input_schema["properties"]["unit"] == {"type": "string", "enum": ["c", "f"]}
    assert made.call({"unit": "c"}) == ("c", 1)
    with pytest.raises(ToolArgumentError, match="'c' or 'f'"):
        made.call({"unit": "k"})


def test_facts_about_a_parameter_that_is_not_there_are_refused():
    with pytest.raises(ToolSignatureError, match="'town'"):
        Tool(weather, parameters=[ToolParameter("town")])


def test_a_function_of_any_keywords_takes_the_listed_parameters():
    def anything(**kwargs: Any) -> Any:
        return kwargs

    made = tool_from_function(
        anything, parameters=[ToolParameter("n", "int", required=True), ToolParameter("s", "str")]
    )
    assert made.call({"n": 1}) == {"n": 1}
    with pytest.raises(ToolArgumentError):
        made.call({"n": "x"})


@pytest.mark.parametrize("parameters", [["city"], [{"name": "city"}], [None], 5, "city"])
def test_parameters_of_another_type_are_refused(parameters):
    with pytest.raises(TypeError):
        Tool(name="x", parameters=parameters)


def test_the_prompt_is_xml_that_any_parser_reads_back():
    hostile = "<&>\"'\x00\x1b ]]> \r\n"
    made = Tool(
        name=f"n{hostile}",
        description=f"d{hostile}",
        parameters=[
            ToolParameter(f"p{hostile}", "str", hostile, default=hostile, options=[hostile], examples=[hostile])
        ],
    )
    root = ET.fromstring(made.build_prompt())  # noqa: S314  # our own text
    assert root.tag == "tool"
    assert root.findtext("description") == f"d{hostile}".replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    parameter = root.find("parameter")
    assert parameter is not None
    assert parameter.findtext("default") == hostile.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")


def test_the_prompt_has_the_documented_form():
    assert inventory().build_prompt() == (
        '<tool name="check_inventory">\n'
        "  <description>Stock.</description>\n"
        '  <parameter name="product_id" type="str" required="True">\n'
        "    <description>The number.</description>\n"
        "    <examples>\n"
        "      <example>PRD-99</example>\n"
        "    </examples>\n"
        "  </parameter>\n"
        '  <parameter name="warehouse" type="str" required="False">\n'
        "    <default>New York</default>\n"
        "  </parameter>\n"
        "</tool>"
    )


# -- calling


def test_calling_it_is_calling_the_function():
    assert Tool(weather)("Paris", units="f") == "14 f in Paris"
    assert Tool(weather)(5) == "14 c in 5"
    assert asyncio.run(Tool(fetch)("u")) == "u None"


@pytest.mark.parametrize("arguments", ['{"city": "Paris"}', {"city": "Paris"}])
def test_call_and_acall_validate_run_and_return(arguments):
    assert Tool(weather).call(arguments) == "14 c in Paris"
    assert asyncio.run(Tool(weather).acall(arguments)) == "14 c in Paris"
    with pytest.raises(ToolArgumentError, match="town: not a parameter"):
        Tool(weather).call({"town": "Paris"})


def test_models_are_what_the_function_receives():
    assert Tool(search).call('{"query": {"text": "a"}, "deep": "yes"}') == (Query(text="a", limit=10), True)


def test_call_and_acall_raise_what_the_function_raises():
    def fail():
        raise KeyError("k")

    async def afail():
        raise KeyError("k")

    for func in (fail, afail):
        with pytest.raises(KeyError):
            Tool(func).call()
        with pytest.raises(KeyError):
            asyncio.run(Tool(func).acall())


def test_a_sync_function_is_called_in_this_thread():
    assert Tool(threading.current_thread, name="where").call() is threading.current_thread()


@pytest.mark.anyio
async def test_a_sync_function_is_awaited_off_the_loop_unless_it_opts_out():
    where = Tool(threading.current_thread, name="where")
    assert await where.acall() is not threading.current_thread()
    assert await where.replace(thread=False).acall() is threading.current_thread()


def test_an_async_function_is_called_from_sync_code():
    assert Tool(fetch).call({"url": "u", "retries": "2"}) == "u 2"


@pytest.mark.anyio
async def test_an_async_function_is_called_inside_a_running_loop():
    assert Tool(fetch).call({"url": "u"}) == "u None"
    assert await Tool(fetch).acall({"url": "u"}) == "u None"


class Awaiting:
    async def __call__(self, x: int) -> int:
        await asyncio.sleep(0)
        return x


def returns_coroutine(x: int) -> Any:
    return Awaiting()(x)


@pytest.mark.parametrize("func", [Awaiting(), functools.partial(Awaiting()), Awaiting().__call__, returns_coroutine])
def test_whatever_gives_a_coroutine_is_awaited(func):
    made = Tool(func, name="f")
    assert made.call('{"x": "5"}') == 5
    assert asyncio.run(made.acall('{"x": 5}')) == 5


def test_a_context_is_injected_without_a_run():
    assert Tool(contextual).call('{"x": 1}') == (1, ToolContext)
    assert asyncio.run(Tool(contextual).acall({"x": 1})) == (1, ToolContext)


# -- immutability


def test_a_tool_does_not_change():
    made = Tool(weather)
    with pytest.raises(AttributeError, match=r"tool\.replace\(name=\.\.\.\)"):
        made.name = "other"
    with pytest.raises(AttributeError):
        made.anything = 1
    with pytest.raises(AttributeError):
        del made.name
    assert made.name == "weather"


def test_copies_are_the_same_tool():
    made = Tool(weather, effect="read")
    for again in (copy.copy(made), copy.deepcopy(made)):
        assert as_bytes(again) == as_bytes(made)
        assert again.call({"city": "P"}) == "14 c in P"


def test_the_repr_names_it_and_where_it_came_from():
    assert repr(Tool(weather)) == "<Tool 'weather'>"
    assert repr(Tool(weather).replace(origin="mcp:fs")) == "<Tool 'weather' from mcp:fs>"


def test_making_a_tool_does_not_make_its_schema():
    made = Tool(copied(weather))
    assert "input_schema" not in vars(made)
    assert made.name == "weather"
    assert "input_schema" not in vars(made)


def test_warnings_of_a_tool_are_given_once():
    with pytest.warns(ToolcribWarning) as caught:
        made = Tool(unhinted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.replace(strict=True).replace(description="d").replace(name="n")
    assert len(caught) == 1


def test_a_declared_type_stands_in_for_a_missing_hint_and_never_against_one():
    def look(a, b: int = 1):
        return a, b

    declared = [ToolParameter("a", "List[int]", "Numbers."), ToolParameter("b", "str")]
    tool = tool_from_function(look, parameters=declared)
    assert tool.input_schema["properties"]["a"] == {
        "items": {"type": "integer"},
        "type": "array",
        "description": "Numbers.",
    }
    assert tool.input_schema["properties"]["b"]["type"] == "integer"
    assert tool.call('{"a": ["1"]}') == ([1], 1)
    with pytest.raises(ToolArgumentError):
        tool.call('{"a": "x"}')
