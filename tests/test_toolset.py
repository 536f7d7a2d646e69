from __future__ import annotations

import functools
import gc
import itertools
import threading
import time
import warnings

import pytest

from toolcrib.entries import MAX_TOOLS
from toolcrib.errors import ToolcribWarning, ToolNameError, ToolNotFoundError, ToolSignatureError
from toolcrib.limits import MAX_NAME_CHARS, Limits
from toolcrib.tools import Tool, tool
from toolcrib.toolset import Toolset, ToolsetChanges


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def sub(a: int, b: int) -> int:
    """Subtract."""
    return a - b


def remote(name, origin="mcp:fs", description="", **members):
    """Return a tool as a source makes it."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return Tool.from_schema(name, description, schema, lambda **_: None).replace(
        origin=origin, original_name=name, **members
    )


def named(name, description="A tool."):
    return Tool.from_schema(name, description, {"type": "object"}, lambda: None)


class Provider:
    """A source whose tools change."""

    name = "shelf"

    def __init__(self, *tools):
        self.tools = list(tools)
        self.asked = 0

    def as_tools(self):
        self.asked += 1
        return list(self.tools)


class Skill:
    def __init__(self, base=0):
        self.base = base

    @tool
    def plus(self, a: int) -> int:
        """Add to the base."""
        return self.base + a

    def get_tools(self):
        return [self.plus]


class Agent:
    def __init__(self, name="helper"):
        self.name = name

    def __call__(self, prompt):
        return prompt

    def as_tool(self):
        return Tool.from_schema(self.name, "Ask.", {"type": "object"}, self.__call__)


class Adder:
    """Adds."""

    def __call__(self, a: int) -> int:
        return a + 1


# -- what an entry may be


def test_no_entries_make_an_empty_toolset():
    toolset = Toolset()
    assert (len(toolset), list(toolset), toolset.names, toolset.entries) == (0, [], (), ())


def test_functions_methods_partials_and_callable_objects_become_tools():
    skill = Skill(10)
    toolset = Toolset([add, skill.plus, Tool.wrap(functools.partial(sub, b=1), name="less"), Adder()])
    assert toolset.names == ("add", "plus", "less", "Adder")
    assert toolset["plus"].call({"a": 5}) == 15
    assert toolset["less"].call({"a": 5}) == 4
    assert toolset["Adder"].call({"a": 5}) == 6


def test_a_tool_is_taken_as_it_is():
    made = Tool(add, name="plus")
    assert list(Toolset([made])) == [made]
    assert Toolset([made])["plus"] is made


def test_a_marked_function_is_the_tool_it_carries():
    @tool(name="other")
    def marked(a: int) -> int:
        """Do."""
        return a

    assert Toolset([marked])["other"] is marked.__tool__


def test_agents_providers_skills_and_toolsets_give_their_tools():
    toolset = Toolset([Agent(), Provider(named("one"), named("two")), Skill(), Toolset([add, sub])])
    assert toolset.names == ("helper", "one", "two", "plus", "add", "sub")


def test_what_is_both_an_agent_and_a_provider_is_one_tool():
    class Both(Agent, Provider):
        def __init__(self):
            self.name = "both"

        def get_tools(self):
            return [add]

    assert Toolset([Both()]).names == ("both",)


def test_nested_iterables_are_flattened_in_order():
    def generated():
        yield add
        yield [Agent("b")]

    entries = [generated(), (named("c"), [[], [named("d")]]), {"x": named("e")}.values(), map(named, "fg")]
    assert Toolset(entries).names == ("add", "b", "c", "d", "e", "f", "g")


def test_a_single_entry_needs_no_list():
    assert Toolset(add).names == ("add",)
    assert Toolset(Provider(named("one"))).names == ("one",)
    assert Toolset(Toolset([add])).names == ("add",)
    assert Toolset(f for f in (add, sub)).names == ("add", "sub")


def test_a_provider_may_list_anything_that_is_an_entry():
    assert Toolset([Provider(add, Skill(), [Agent()])]).names == ("add", "plus", "helper")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("web_search", "'web_search' is not a tool .*names are not looked up"),
        (b"add", "bytes is not a tool"),
        ({"add": add}, r"dict is not a tool .*Tool\.from_schema"),
        ({add}, "set is not a tool .*no order"),
        (frozenset([add]), "frozenset is not a tool .*no order"),
        (Skill, r"Skill'> is not a tool .*pass an instance, as in Skill\(\)"),
        (int, "int'> is not a tool .*pass an instance"),
        (None, "NoneType is not a tool"),
        (42, "int is not a tool"),
        (itertools, "module 'itertools' is not a tool"),
    ],
)
@pytest.mark.parametrize("nested", [lambda entry: entry, lambda entry: [entry], lambda entry: [add, ([entry],)]])
def test_what_cannot_be_a_tool_is_named_with_what_can(entry, words, nested):
    with pytest.raises(TypeError, match=rf"(?s)^.*{words}.*; tools may be functions, Tools, agents"):
        Toolset(nested(entry))


def test_a_secret_in_a_wrong_entry_is_not_shown():
    class Config:
        def __repr__(self):
            return "Config(key=hunter2)"

    with pytest.raises(TypeError, match="Config is not a tool") as caught:
        Toolset([Config()])
    assert "hunter2" not in str(caught.value)


def test_a_function_that_cannot_be_called_by_name_is_refused():
    def positional(a: int, /) -> int:
        """Do."""
        return a

    with pytest.raises(ToolSignatureError, match="positional takes a by position"):
        Toolset([positional])


def test_a_list_that_contains_itself_is_refused():
    entries = [add]
    entries.append([entries])
    with pytest.raises(ValueError, match="list contains itself"):
        Toolset(entries)


def test_a_provider_that_lists_itself_is_refused():
    provider = Provider(add)
    provider.tools.append(provider)
    with pytest.raises(ValueError, match="Provider 'shelf' contains itself"):
        Toolset([provider])


def test_providers_without_end_are_refused():
    class Endless:
        def as_tools(self):
            return [Endless()]

    with pytest.raises(ValueError, match="more than 64 deep"):
        Toolset([Endless()])


@pytest.mark.parametrize(
    "entries", [itertools.repeat(add), [itertools.repeat([])], [[itertools.repeat(named("a"))]]], ids=[0, 1, 2]
)
def test_entries_without_end_are_refused(entries):
    with pytest.raises(ValueError, match="more than 100,000 entries"):
        Toolset(entries)


def test_nested_lists_that_multiply_are_refused():
    entries = [add]
    for _ in range(40):
        entries = [entries, entries]
    with pytest.raises(ValueError, match="more than 100,000 entries"):
        Toolset(entries)


def test_the_error_of_a_provider_keeps_its_type_and_names_the_provider():
    class Broken(Provider):
        def as_tools(self):
            raise ConnectionError("refused")

    with pytest.raises(ConnectionError, match="refused") as caught:
        Toolset([add, Toolset([]), [Broken()]])
    assert caught.value.__notes__ == ["while Broken 'shelf' was asked for its tools"]


def test_an_error_halfway_through_a_listing_names_the_provider():
    class Halfway(Provider):
        def as_tools(self):
            yield add
            raise OSError("gone")

    with pytest.raises(OSError, match="gone") as caught:
        Toolset([Halfway()])
    assert "Halfway 'shelf'" in caught.value.__notes__[0]


@pytest.mark.parametrize("listed", [None, 42, "abc", {"a": add}])
def test_a_provider_that_lists_no_tools_is_named(listed):
    class Wrong(Provider):
        def as_tools(self):
            return listed

    with pytest.raises(TypeError, match=rf"as_tools\(\) returned {type(listed).__name__}") as caught:
        Toolset([Wrong()])
    assert "Wrong 'shelf'" in caught.value.__notes__[0]


def test_a_provider_whose_list_holds_no_tool_is_named():
    with pytest.raises(TypeError, match="'abc' is not a tool") as caught:
        Toolset([Provider("abc")])
    assert "Provider 'shelf'" in caught.value.__notes__[0]


def test_an_async_listing_is_refused_and_leaves_no_coroutine():
    class Async:
        async def as_tools(self):
            return [add]

    with pytest.raises(TypeError, match=r"as_tools\(\) returned a coroutine"):
        Toolset([Async()])
    gc.collect()


@pytest.mark.parametrize("made", [None, add, [named("a")]])
def test_an_as_tool_that_gives_no_tool_is_refused(made):
    class Odd(Agent):
        def as_tool(self):
            return made

    with pytest.raises(TypeError, match=r"as_tool\(\) of Odd 'helper' returned \w+, not a Tool"):
        Toolset([Odd()])


# -- finding


def test_tools_are_found_by_name_in_their_order():
    toolset = Toolset([sub, add])
    assert toolset.names == ("sub", "add")
    assert [found.name for found in toolset] == ["sub", "add"]
    assert toolset.as_tools() == list(toolset)
    assert toolset["add"] is toolset.get("add")
    assert toolset.get("nothing") is None


def test_in_takes_a_name_or_a_tool():
    toolset = Toolset([add])
    assert "add" in toolset
    assert toolset["add"] in toolset
    assert "sub" not in toolset
    assert Tool(add) not in toolset
    assert add not in toolset
    assert ["add"] not in toolset


def test_a_missing_name_is_answered_with_the_nearest():
    toolset = Toolset([named("fs.read_file"), named("fs.write_file"), named("search")])
    with pytest.raises(ToolNotFoundError, match=r"^Tool 'fs\.reed_file' not found\. Did you mean 'fs\.read_file'"):
        toolset["fs.reed_file"]
    with pytest.raises(
        ToolNotFoundError, match=r"^Tool 'zzz' not found\. There are: fs\.read_file, fs\.write_file, search\.$"
    ):
        toolset["zzz"]
    with pytest.raises(LookupError):
        toolset["x" * 1_000_000]


@pytest.mark.parametrize("name", [None, 3, ["add"], {}])
def test_a_name_that_is_no_text_is_not_found(name):
    toolset = Toolset([add])
    assert toolset.get(name) is None
    with pytest.raises(ToolNotFoundError):
        toolset[name]


def test_the_repr_is_short():
    assert repr(Toolset()) == "<Toolset of 0 tools>"
    assert repr(Toolset([add])) == "<Toolset of 1 tool: add>"
    assert repr(Toolset(map(named, "abcde"))) == "<Toolset of 5 tools: a, b, c, ...>"
    assert len(repr(Toolset([named("x" * 1_000)]))) < 100


def test_entries_are_kept_as_given():
    provider = Provider(named("one"))
    entries = [add, provider, [sub]]
    toolset = Toolset(entries)
    assert toolset.entries == (add, provider, [sub])
    entries.clear()
    assert len(toolset.entries) == 3


def test_entries_of_a_derived_toolset_or_a_generator_give_the_same_tools_again():
    derived = Toolset([add, sub]).select(["add"]).prefixed("math.")
    assert Toolset(derived.entries).names == derived.names == ("math.add",)
    generated = Toolset(f for f in (add, sub))
    assert Toolset(generated.entries).names == ("add", "sub")
    nested = Toolset([add, (f for f in (sub,))])
    assert Toolset(nested.entries).names == ("add", "sub")


def test_limits_are_kept_and_handed_on():
    limits = Limits(deadline=1)
    toolset = Toolset([add], limits=limits)
    assert toolset.limits is limits
    assert toolset.select(["add"]).limits is limits
    assert Toolset([toolset]).limits is None


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="on_collision must be warn, raise, replace or prefix, not 'ignore'"):
        Toolset([], on_collision="ignore")


# -- names


@pytest.mark.parametrize("name", ["", "  ", "x" * (MAX_NAME_CHARS + 1), None, 7])
def test_a_name_that_is_no_name_is_refused(name):
    odd = named("a")
    odd.__dict__["name"] = name  # a foreign subclass may let through what Tool itself refuses
    with pytest.raises(ToolNameError):
        Toolset([odd])


def test_a_name_of_the_greatest_length_is_taken():
    assert len(Toolset([named("x" * MAX_NAME_CHARS)])) == 1


# -- collisions


def test_the_later_of_two_local_tools_wins_in_the_place_of_the_first_with_a_warning():
    first, other, later = named("read"), named("other"), Tool(add, name="read")
    with pytest.warns(
        ToolcribWarning, match=r"two tools are named 'read'.*test_toolset\.add; the later is used"
    ) as got:
        toolset = Toolset([first, other, later])
    assert toolset.names == ("read", "other")
    assert toolset["read"] is later
    assert [(str(w.filename), w.category) for w in got] == [(__file__, ToolcribWarning)]


def test_each_clash_warns_once_and_names_both_origins():
    with pytest.warns(ToolcribWarning) as got:
        toolset = Toolset([remote("read"), remote("write"), Tool(sub, name="read"), Tool(add, name="write")])
    assert [str(w.message) for w in got] == [
        f"two tools are named 'read': one of mcp:fs, one of {__name__}.sub; the later is used",
        f"two tools are named 'write': one of mcp:fs, one of {__name__}.add; the later is used",
    ]
    assert toolset["read"].origin is None


def test_a_derived_or_nested_or_refreshed_toolset_does_not_warn_again():
    with pytest.warns(ToolcribWarning) as got:
        toolset = Toolset([named("a"), Tool(add, name="a")])
    assert len(got) == 1
    toolset.refresh()
    assert len(Toolset([toolset, toolset.select(["a"])])) == 1


def test_raise_refuses_any_clash():
    with pytest.raises(ToolNameError, match=r"two tools are named 'add': one of .*add, one of mcp:calc"):
        Toolset([add, remote("add", "mcp:calc")], on_collision="raise")
    with pytest.raises(ToolNameError):
        Toolset([named("a"), named("a")], on_collision="raise")


def test_replace_takes_the_later_silently():
    later = remote("add", "mcp:calc")
    assert Toolset([add, later], on_collision="replace")["add"] is later


@pytest.mark.parametrize("held", [add, remote("add", "mcp:other")])
def test_a_remote_tool_never_replaces_one_of_another_origin_by_default(held):
    with pytest.raises(ToolNameError, match=r"a remote tool replaces no other silently.*on_collision='replace'"):
        Toolset([held, remote("add", "mcp:calc")])


def test_a_remote_tool_given_twice_by_its_own_origin_only_warns():
    with pytest.warns(ToolcribWarning, match="one of mcp:fs, one of mcp:fs"):
        assert Toolset([remote("a", description="1"), remote("a", description="2")])["a"].description == "2"


def test_prefix_gives_the_later_a_name_from_where_it_comes():
    read = Tool(add, name="read")
    toolset = Toolset(
        [named("read"), remote("read"), remote("read", "openapi:https://x.org/v1"), read], on_collision="prefix"
    )
    assert toolset.names == ("read", "fs.read", "https_x.org_v1.read", "test_toolset.read")
    assert toolset["fs.read"].original_name == "read"
    assert toolset["test_toolset.read"].original_name == "read"


def test_prefixed_names_that_are_taken_are_numbered():
    clashes = [remote("a", description=str(number)) for number in range(3)]
    toolset = Toolset([named("fs.a"), named("a"), *clashes], on_collision="prefix")
    assert toolset.names == ("fs.a", "a", "fs.a_2", "fs.a_3", "fs.a_4")
    assert [found.description for found in toolset][2:] == ["0", "1", "2"]


def test_prefixes_are_the_same_each_time():
    entries = [named("a"), *[remote("a", f"mcp:{server}") for server in "xyx"]]
    names = Toolset(entries, on_collision="prefix").names
    assert names == ("a", "x.a", "y.a", "x.a_2")
    assert Toolset(entries, on_collision="prefix").names == names
    toolset = Toolset(entries, on_collision="prefix")
    assert not toolset.refresh()


@pytest.mark.parametrize("policy", ["warn", "raise", "replace", "prefix"])
def test_the_same_thing_twice_is_no_collision(policy):
    skill, agent, provider, made = Skill(), Agent(), Provider(remote("r"), add), named("t")
    entries = [add, skill, skill.plus, skill.get_tools(), agent, provider, made]
    toolset = Toolset([entries, entries, Toolset(entries), Tool(add)], on_collision=policy)
    assert toolset.names == ("add", "plus", "helper", "r", "t")


def test_a_provider_or_agent_that_makes_its_tools_anew_may_stand_twice():
    class Fresh(Provider):
        def as_tools(self):
            self.asked += 1
            return [named("one"), remote("two")]

    class FreshAgent(Agent):
        def as_tool(self):
            return named("three")

    provider, agent = Fresh(), FreshAgent()
    toolset = Toolset([provider, agent, [provider, agent]], on_collision="raise")
    assert toolset.names == ("one", "two", "three")
    assert provider.asked == 1


def test_the_same_thing_twice_beside_another_of_its_name_is_moved_once():
    entries = [named("add"), add, add, Tool(add), remote("add"), *[remote("add", "mcp:x")] * 2]
    assert Toolset(entries, on_collision="prefix").names == ("add", "test_toolset.add", "fs.add", "x.add")


@pytest.mark.parametrize(
    "change", [{"timeout": 5}, {"strict": True}, {"effect": "read"}, {"description": "Other."}, {"thread": False}]
)
def test_the_same_function_with_other_options_is_a_collision(change):
    with pytest.raises(ToolNameError):
        Toolset([Tool(add), Tool(add, **change)], on_collision="raise")


def test_methods_of_two_instances_are_a_collision():
    with pytest.warns(ToolcribWarning, match=r"Skill\.plus"):
        assert Toolset([Skill(1), Skill(2)])["plus"].call({"a": 1}) == 3


def test_many_clashes_are_settled_in_linear_time():
    clashes = [remote("a", description=str(number)) for number in range(5_000)]
    start = time.process_time()
    assert len(Toolset(clashes, on_collision="prefix")) == 5_000
    assert time.process_time() - start < 5


# -- select


FILES = [remote("read"), remote("write"), remote("delete"), add]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, "read write delete add"),
        ({"include": ["add", "read"]}, "read add"),
        ({"include": "add"}, "add"),
        ({"include": []}, ""),
        ({"exclude": ["add"]}, "read write delete"),
        ({"exclude": "add"}, "read write delete"),
        ({"include": ["add", "read"], "exclude": ["read"]}, "add"),
        ({"allow": ["*e*"]}, "read write delete"),
        ({"allow": "r*"}, "read"),
        ({"allow": []}, ""),
        ({"deny": ["*e"]}, "read add"),
        ({"deny": "*"}, ""),
        ({"allow": "*", "deny": ["[rw]*"]}, "delete add"),
        ({"include": ["read", "write"], "deny": ["w*"]}, "read"),
        ({"allow": ["READ"]}, ""),
        ({"allow": ["r?ad", "nothing"]}, "read"),
    ],
)
def test_filters_keep_the_order_and_deny_wins(filters, names):
    assert Toolset(FILES).select(**filters).names == tuple(names.split())


def test_exact_filters_see_original_names_and_globs_the_shown_ones():
    toolset = Toolset(FILES).prefixed("fs.").renamed({"fs.add": "sum"})
    assert toolset.select(include=["read", "add"]).names == ("fs.read", "sum")
    assert toolset.select(exclude=["read", "add"]).names == ("fs.write", "fs.delete")
    assert toolset.select(allow=["fs.*"], deny=["*.d*"]).names == ("fs.read", "fs.write")
    assert toolset.select(allow=["add"]).names == ()


def test_an_exact_filter_with_glob_characters_warns_and_stays_exact():
    with pytest.warns(
        ToolcribWarning, match=r"include takes exact names, but 're\*' looks like a glob: use allow="
    ) as got:
        assert Toolset(FILES).select(include=["re*", "add"]).names == ("add",)
    assert [warning.filename for warning in got] == [__file__]
    with pytest.warns(ToolcribWarning, match="exclude takes exact names.*use deny="):
        assert len(Toolset(FILES).select(exclude=["[a]dd"])) == 4


def test_an_exact_filter_that_matches_nothing_warns_with_what_may_be_meant():
    with pytest.warns(ToolcribWarning, match=r"include names 'raed', which .* Did you mean 'read'") as got:
        Toolset(FILES).select(include=["raed", "add"])
    assert len(got) == 1
    with pytest.warns(ToolcribWarning, match=r"exclude names 'fs\.read', which .* Did you mean 'read'\?"):
        assert len(Toolset(FILES).prefixed("fs.").select(exclude=["fs.read"])) == 4


@pytest.mark.parametrize("option", ["include", "exclude", "allow", "deny"])
def test_a_filter_that_is_no_text_is_refused(option):
    with pytest.raises(TypeError, match=f"{option} takes names, not int"):
        Toolset(FILES).select(**{option: ["add", 3]})


def test_a_filter_given_as_a_generator_holds_after_a_refresh():
    toolset = Toolset(FILES).select(include=(name for name in ["add"]), deny=(glob for glob in ["x*"]))
    toolset.refresh()
    assert toolset.names == ("add",)


def test_a_hostile_glob_takes_no_time():
    toolset = Toolset([named("a" * 1_000)])
    start = time.process_time()
    assert len(toolset.select(allow="*a" * 50 + "b")) == 0
    assert time.process_time() - start < 5


# -- prefixed, renamed


def test_a_prefix_goes_before_each_name_and_the_original_is_kept():
    toolset = Toolset([add, remote("read")]).prefixed("a.").prefixed("b.")
    assert toolset.names == ("b.a.add", "b.a.read")
    assert [found.original_name for found in toolset] == ["add", "read"]
    assert toolset["b.a.read"].origin == "mcp:fs"
    assert toolset["b.a.add"].call({"a": 1, "b": 2}) == 3


def test_an_empty_prefix_changes_nothing():
    toolset = Toolset([add])
    assert list(toolset.prefixed("")) == list(toolset)


def test_a_prefix_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="a prefix is text"):
        Toolset([add]).prefixed(3)


def test_a_prefix_that_makes_names_too_long_is_refused():
    with pytest.raises(ToolNameError):
        Toolset([add]).prefixed("x" * MAX_NAME_CHARS)


def test_renaming_is_done_at_once_so_names_can_be_swapped():
    toolset = Toolset([add, sub]).renamed({"add": "sub", "sub": "add"})
    assert toolset.names == ("sub", "add")
    assert toolset["sub"].call({"a": 5, "b": 1}) == 6
    assert toolset["sub"].original_name == "add"


def test_renaming_what_is_not_there_is_refused_with_near_names():
    with pytest.raises(ToolNameError, match=r"Tool 'ad' not found\. Did you mean 'add'\? It cannot be renamed"):
        Toolset([add]).renamed({"ad": "plus"})


@pytest.mark.parametrize("name", ["", None, 3, "x" * (MAX_NAME_CHARS + 1)])
def test_renaming_to_what_is_no_name_is_refused(name):
    with pytest.raises(ToolNameError):
        Toolset([add]).renamed({"add": name})


def test_renaming_to_a_taken_name_is_a_collision():
    with pytest.warns(ToolcribWarning, match="two tools are named 'sub'"):
        assert Toolset([sub, add]).renamed({"add": "sub"})["sub"].call({"a": 1, "b": 1}) == 2
    with pytest.raises(ToolNameError):
        Toolset([sub, add], on_collision="raise").renamed({"add": "sub"})
    with pytest.raises(ToolNameError):
        Toolset([sub, remote("read")]).renamed({"read": "sub"})


def test_deriving_leaves_the_toolset_and_its_tools_as_they_were():
    toolset = Toolset([add, sub])
    before = list(toolset)
    toolset.select(["add"]), toolset.prefixed("x."), toolset.renamed({"add": "plus"})
    assert list(toolset) == before
    assert [found.name for found in before] == ["add", "sub"]


# -- refresh


def test_refresh_tells_what_was_added_removed_and_changed():
    provider = Provider(remote("a"), remote("b"), remote("c"))
    toolset = Toolset([add, provider])
    assert toolset.refresh() == ToolsetChanges((), (), ())
    provider.tools = [remote("c", description="new"), remote("d"), remote("a")]
    assert toolset.refresh() == ToolsetChanges(added=("d",), removed=("b",), changed=("c",))
    assert toolset.names == ("add", "c", "d", "a")


@pytest.mark.parametrize(
    ("change", "tells"),
    [
        ({"description": "Other."}, True),
        ({"parameters": {"type": "object", "properties": {"other": {"type": "string"}}}}, True),
        ({"strict": True}, True),
        ({"effect": "destructive"}, True),
        ({"output_schema": {"type": "string"}}, True),
        ({"timeout": 3}, False),
    ],
)
def test_changed_is_what_a_model_is_told(change, tells):
    provider = Provider(remote("a"))
    toolset = Toolset(provider)
    provider.tools = [remote("a").replace(**change)]
    assert toolset.refresh().changed == (("a",) if tells else ())


def test_changes_are_true_only_if_there_are_any():
    assert not ToolsetChanges((), (), ())
    assert ToolsetChanges((), (), ("a",))


def test_a_refresh_keeps_the_tools_of_functions_and_generators():
    toolset = Toolset(
        [
            add,
            (f for f in (sub,)),
            [(f for f in (Adder(),))],
            Tool(functools.partial(sub, b=2), name="less"),
            Skill(1).plus,
        ]
    )
    before = list(toolset)
    assert not toolset.refresh()
    assert not toolset.refresh()
    assert list(toolset) == before


def test_a_refresh_sees_an_agent_that_changed():
    agent = Agent("one")
    toolset = Toolset([agent])
    agent.name = "two"
    assert toolset.refresh() == ToolsetChanges(("two",), ("one",), ())


def test_a_refresh_sees_a_list_that_changed():
    inner = [add]
    toolset = Toolset([inner])
    inner.append(sub)
    assert toolset.names == ("add",)
    assert toolset.refresh().added == ("sub",)


def test_derived_toolsets_refresh_through_all_their_steps():
    provider = Provider(remote("read"), remote("write"))
    derived = Toolset([provider]).select(exclude=["write"]).prefixed("fs.").renamed({"fs.read": "look"})
    provider.tools.append(remote("list"))
    assert derived.refresh() == ToolsetChanges(("fs.list",), (), ())
    assert derived.names == ("look", "fs.list")


def test_a_renamed_tool_may_go_and_come_back():
    provider = Provider(remote("read"))
    derived = Toolset([provider]).renamed({"read": "look"})
    kept, provider.tools = provider.tools, []
    assert derived.refresh().removed == ("look",)
    provider.tools = kept
    assert derived.refresh().added == ("look",)


def test_a_refresh_asks_nested_toolsets_too_and_each_provider_once():
    provider = Provider(remote("a"))
    inner = Toolset([provider])
    outer = Toolset([inner.prefixed("x."), [inner.prefixed("y.")], inner, provider])
    asked = provider.asked
    provider.tools.append(remote("b"))
    assert outer.refresh().added == ("x.b", "y.b", "b")
    assert inner.names == ("a", "b")
    assert provider.asked == asked + 2  # by the inner toolset and by the outer


def test_a_nested_toolset_is_taken_as_it_is_until_a_refresh():
    provider = Provider(remote("a"))
    inner = Toolset([provider])
    provider.tools.append(remote("b"))
    assert Toolset([inner]).names == ("a",)


def test_a_refresh_that_fails_leaves_everything_as_it_was():
    provider = Provider(remote("a"))
    toolset = Toolset([provider])
    made = toolset.cached("key", object)
    provider.tools = [remote("b"), "no tool"]
    with pytest.raises(TypeError):
        toolset.refresh()
    assert toolset.names == ("a",)
    assert toolset.cached("key", object) is made


def test_a_loop_over_tools_is_not_disturbed_by_a_refresh():
    provider = Provider(*map(remote, "abc"))
    toolset = Toolset([provider])
    seen = []
    for found in toolset:
        provider.tools = []
        toolset.refresh()
        seen.append(found.name)
    assert seen == ["a", "b", "c"]
    assert len(toolset) == 0


# -- cached


def test_a_cached_value_is_made_once_until_the_tools_may_have_changed():
    toolset = Toolset([add])
    made = toolset.cached(("chat", True), object)
    assert toolset.cached(("chat", True), object) is made
    assert toolset.cached(("chat", False), object) is not made
    assert toolset.select(["add"]).cached(("chat", True), object) is not made
    toolset.refresh()
    assert toolset.cached(("chat", True), object) is not made


def test_a_cached_none_is_made_once():
    calls = []
    toolset = Toolset([add])
    assert [toolset.cached("key", lambda: calls.append(1)) for _ in range(2)] == [None, None]
    assert calls == [1]


def test_a_make_that_fails_is_tried_again():
    toolset = Toolset([add])
    with pytest.raises(ZeroDivisionError):
        toolset.cached("key", lambda: 1 / 0)
    assert toolset.cached("key", lambda: 1) == 1


def test_racing_threads_all_get_the_same_object():
    toolset = Toolset([add])
    together = threading.Barrier(8)
    seen = []

    def make():
        together.wait(10)  # all of them are making
        return object()

    threads = [threading.Thread(target=lambda: seen.append(toolset.cached("key", make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 8
    assert len(set(map(id, seen))) == 1


# -- many


def test_ten_thousand_tools_are_cheap_and_read_no_schema():
    namespace = {}
    for number in range(2_000):
        exec(f"def f{number}(a: int) -> int:\n    'Do.'", namespace)
    functions = [value for name, value in namespace.items() if name.startswith("f")]
    others = [named(f"r{number}") for number in range(8_000)]
    start = time.process_time()
    toolset = Toolset([functions, others])
    derived = toolset.prefixed("x.").select(exclude=["f1"], deny=["x.r*9"])
    with pytest.raises(ToolNotFoundError, match="Did you mean 'f1999'"):
        toolset["f1999x"]
    assert time.process_time() - start < 5
    assert (len(toolset), len(derived)) == (10_000, 9_199)
    assert not any("input_schema" in found.__dict__ for found in toolset)


def test_the_bound_on_entries_leaves_room_for_great_catalogues():
    assert MAX_TOOLS >= 50_000


def test_no_warning_is_given_for_a_toolset_without_clashes():
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        Toolset([add, Skill(), Agent(), Provider(remote("x"))]).select(include=["add"], allow=["a*"]).prefixed("p.")
    assert got == []
