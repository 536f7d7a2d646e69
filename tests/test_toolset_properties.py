from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.tools import Tool
from toolcrib.toolset import Toolset

NAMES = st.sampled_from(["a", "b", "ab", "x.a", "x.a_2", "y.b", "b_2", "é", "[a]"])
GLOBS = st.sampled_from(["*", "a*", "?", "x.*", "[ab]", "[!a]*", "b_?", "é", "nothing", ""])
PREFIXES = st.sampled_from(["", "x.", "fs/", "é:"])


def made(name, origin=None):
    tool = Tool.from_schema(name, "A tool.", {"type": "object"}, lambda: None)
    return tool.replace(origin=origin, original_name=name) if origin else tool


TOOLS = st.lists(st.builds(made, NAMES, st.sampled_from([None, "mcp:x", "mcp:y"])), max_size=12)
UNIQUE_TOOLS = st.lists(NAMES, unique=True, max_size=9).map(lambda names: [made(name) for name in names])


def nested(tools):
    """Return entries of any shape that hold the tools in their order."""
    splits = st.lists(st.integers(0, len(tools)), max_size=6).map(sorted)
    return splits.map(lambda cuts: [tools[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)])


class Shelf:
    def __init__(self, tools):
        self.tools = tools

    def as_tools(self):
        return iter(self.tools)


@given(TOOLS)
def test_replacing_keeps_the_first_place_and_the_last_tool(tools):
    toolset = Toolset(tools, on_collision="replace")
    assert list(toolset.names) == list(dict.fromkeys(tool.name for tool in tools))
    assert all(toolset[tool.name] is tool for tool in {tool.name: tool for tool in tools}.values())


@given(TOOLS)
def test_prefixing_loses_no_tool_and_renames_no_first(tools):
    toolset = Toolset(tools, on_collision="prefix")
    assert [tool.func for tool in toolset] == [tool.func for tool in tools]
    assert all(tool.name == name and toolset[name] is tool for name, tool in zip(toolset.names, toolset, strict=True))
    for number, tool in enumerate(tools):
        if tool.name not in toolset.names[:number]:
            assert toolset.names[number] == tool.name
        else:
            assert toolset.as_tools()[number].original_name == tool.name
    assert Toolset(tools, on_collision="prefix").names == toolset.names
    assert not toolset.refresh()


@given(TOOLS.flatmap(lambda tools: st.tuples(st.just(tools), nested(tools))), st.sampled_from(["replace", "prefix"]))
def test_how_entries_are_nested_makes_no_difference(tools_and_entries, policy):
    tools, entries = tools_and_entries
    flat = Toolset(tools, on_collision=policy).names
    assert Toolset(entries, on_collision=policy).names == flat
    assert Toolset([Shelf(part) for part in entries], on_collision=policy).names == flat
    assert Toolset((iter(part) for part in entries), on_collision=policy).names == flat


@given(TOOLS, st.sampled_from(["replace", "prefix"]))
def test_giving_everything_twice_changes_nothing(tools, policy):
    once = Toolset(tools, on_collision="prefix")
    assert list(Toolset([once, once, list(once)], on_collision=policy)) == list(once)


@given(UNIQUE_TOOLS, st.lists(GLOBS, max_size=3), st.lists(GLOBS, max_size=3), PREFIXES)
def test_globs_keep_what_the_standard_library_matches(tools, allow, deny, prefix):
    toolset = Toolset(tools).prefixed(prefix)
    kept = [
        name
        for name in toolset.names
        if any(fnmatchcase(name, glob) for glob in allow) and not any(fnmatchcase(name, glob) for glob in deny)
    ]
    assert list(toolset.select(allow=allow, deny=deny).names) == kept


@given(UNIQUE_TOOLS, st.lists(GLOBS, max_size=3))
def test_allow_and_deny_of_the_same_globs_share_the_tools(tools, globs):
    toolset = Toolset(tools)
    allowed, rest = toolset.select(allow=globs), toolset.select(deny=globs)
    assert not {*allowed.names} & {*rest.names}
    assert {*allowed.names} | {*rest.names} == {*toolset.names}
    assert len(toolset.select(allow=globs, deny=globs)) == 0


PLAIN_TOOLS = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1).map(lambda names: [made(n) for n in names])


@given(PLAIN_TOOLS, PREFIXES, st.data())
def test_exact_filters_do_not_see_prefixes_or_new_names(tools, prefix, data):
    toolset = Toolset(tools)
    some = data.draw(st.lists(st.sampled_from(toolset.names), unique=True))
    changed = toolset.prefixed(prefix).renamed({prefix + toolset.names[0]: "new"})
    for filters in ({"include": some}, {"exclude": some}):
        selected = toolset.select(**filters)
        assert [tool.original_name or tool.name for tool in changed.select(**filters)] == list(selected.names)
        assert selected.prefixed(prefix).names == toolset.prefixed(prefix).select(**filters).names
    assert {*toolset.select(include=some).names} | {*toolset.select(exclude=some).names} == {*toolset.names}


@given(UNIQUE_TOOLS, PREFIXES, PREFIXES)
def test_prefixes_add_up(tools, inner, outer):
    toolset = Toolset(tools)
    assert toolset.prefixed(inner).prefixed(outer).names == toolset.prefixed(outer + inner).names


@given(UNIQUE_TOOLS.flatmap(lambda tools: st.tuples(st.just(tools), st.permutations([t.name for t in tools]))))
def test_renaming_forth_and_back_is_the_same_names_and_tools(tools_and_names):
    tools, names = tools_and_names
    toolset = Toolset(tools, on_collision="raise")
    mapping = dict(zip(toolset.names, names, strict=True))
    forth = toolset.renamed(mapping)
    back = forth.renamed({new: old for old, new in mapping.items()})
    assert list(forth.names) == names
    assert back.names == toolset.names
    assert [tool.func for tool in back] == [tool.func for tool in forth] == [tool.func for tool in toolset]


@given(UNIQUE_TOOLS, UNIQUE_TOOLS, PREFIXES, st.lists(GLOBS, max_size=2))
def test_a_refresh_is_told_as_the_difference_it_makes(before, after, prefix, deny):
    shelf = Shelf(before)
    toolset = Toolset(shelf).prefixed(prefix).select(deny=deny)
    old = toolset.names
    shelf.tools = [tool.replace(description="Other.") if tool.name == "a" else tool for tool in after]
    changes = toolset.refresh()
    assert toolset.names == Toolset(shelf).prefixed(prefix).select(deny=deny).names
    assert {*old} - {*changes.removed} | {*changes.added} == {*toolset.names}
    assert not {*changes.added} & {*old}
    assert {*changes.changed} == {*old} & {*toolset.names} & {prefix + "a"}
    assert not toolset.refresh()
