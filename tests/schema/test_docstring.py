import inspect
import logging
import subprocess
import sys
import time

import pytest

from toolcrib.schema.docstring import Docstring, parse

PROSE = [
    pytest.param(None, "", id="none"),
    pytest.param("", "", id="empty"),
    pytest.param("  \n\t\n ", "", id="blank"),
    pytest.param("Add.", "Add.", id="one line"),
    pytest.param("  Add.  ", "Add.", id="one padded line"),
    pytest.param("Ratio a:b", "Ratio a:b", id="one line with a colon"),
    pytest.param("\n    Add.\n    ", "Add.", id="starts on the second line"),
    pytest.param("Add.\n\n    More\n    of it.\n\n    Third.\n    ", "Add.\n\nMore\nof it.\n\nThird.", id="paragraphs"),
    pytest.param("Do:\n\n      - a\n        - b\n    end", "Do:\n\n  - a\n    - b\nend", id="inner indentation stays"),
    pytest.param("Add.\n\tMore.\n\t\tDeep.", "Add.\nMore.\n        Deep.", id="tabs"),
    pytest.param("Add.\r\n    More.\r\n\r\n    Args:\r\n        a: x", "Add.\nMore.", id="windows line ends"),
    pytest.param("Add.\n\n    Note: this is fine.\n\n    More.", "Add.\n\nNote: this is fine.\n\nMore.", id="a note"),
    pytest.param("Add.\n\n    Example: `add(1)`.\n    ", "Add.\n\nExample: `add(1)`.", id="an inline example"),
    pytest.param("Use these:\n    a\n    b", "Use these:\na\nb", id="an unknown word before a colon"),
    pytest.param("Say:\n\n        Args:\n\n    and go.", "Say:\n\n    Args:\n\nand go.", id="a deeper head is text"),
    pytest.param("Add.\n    Args:\n        a: x\n\n    After.", "Add.", id="text after a section is no prose"),
    pytest.param("Args:\n    a: x", "", id="nothing but a section"),
    pytest.param("ééé 漢字 \u2028 x\n    y", "ééé 漢字 \u2028 x\ny", id="unicode"),
    pytest.param("Title\n    -----\n    Text.", "Title\n-----\nText.", id="an underlined title that is no section"),
    pytest.param("A | B\n    --|--\n    1 | 2", "A | B\n--|--\n1 | 2", id="a table"),
    pytest.param("Sum.\n\n    Returns\n    -------\n    int\n        It.", "Sum.", id="numpy without parameters"),
    pytest.param("Sum.\n\n    :returns: it", "Sum.", id="sphinx without parameters"),
    pytest.param("Sum of `:param x:`\n    and y.", "Sum of `:param x:`\nand y.", id="a field in the middle of a line"),
]


@pytest.mark.parametrize(("doc", "prose"), PROSE)
def test_prose_is_the_cleaned_text_before_the_first_section(doc, prose):
    assert parse(doc).prose == prose


@pytest.mark.parametrize(
    "head",
    "Args Arguments Parameters Params,Keyword Args,Keyword Arguments,Other Parameters,Returns Return Raises Yields "
    "Example Examples Note Notes Warning Warnings Warns Attributes References,See Also,Todo Tip args RETURNS".replace(
        " ", ","
    )
    .replace("Keyword,", "Keyword ")
    .replace("Other,", "Other ")
    .replace("See,", "See ")
    .split(","),
)
def test_every_known_section_head_ends_the_prose(head):
    assert parse(f"Do it.\n\n    {head}:\n        a: b\n    ").prose == "Do it."


PARAMETERS = [
    pytest.param("a: The first.", {"a": "The first."}, id="bare"),
    pytest.param("a (int): The first.", {"a": "The first."}, id="typed"),
    pytest.param("a(int) : The first.", {"a": "The first."}, id="tight type, loose colon"),
    pytest.param("a (dict[str, Callable[[int], (str)]], optional): F.", {"a": "F."}, id="nested type"),
    pytest.param("a (Literal['x: y']): F.", {"a": "F."}, id="a colon in the type"),
    pytest.param("a (int): F (see `b`): yes.", {"a": "F (see `b`): yes."}, id="the type ends at its own colon"),
    pytest.param("a: One\n    two\n      three.", {"a": "One two three."}, id="continued"),
    pytest.param("a:\n    One\n    two.", {"a": "One two."}, id="text starts on the next line"),
    pytest.param("a: One.\n\n    Two.\nb: B.", {"a": "One. Two.", "b": "B."}, id="paragraphs"),
    pytest.param("a: One\ntwo.\nb: B.", {"a": "One two.", "b": "B."}, id="continued without indentation"),
    pytest.param("a: Like\n    x: 1.\nb: B.", {"a": "Like x: 1.", "b": "B."}, id="a deeper entry is text"),
    pytest.param("*args: A.\n**kwargs: K.", {"args": "A.", "kwargs": "K."}, id="stars"),
    pytest.param("\\*args: A.\n\\*\\*kwargs: K.", {"args": "A.", "kwargs": "K."}, id="escaped stars"),
    pytest.param("`a`: A.\n``b`` (int): B.", {"a": "A.", "b": "B."}, id="names in backticks"),
    pytest.param("a, b (int): Both.", {"a": "Both.", "b": "Both."}, id="two names"),
    pytest.param('a: Say "hi", it\'s `x`: ok.', {"a": 'Say "hi", it\'s `x`: ok.'}, id="quotes, backticks, colons"),
    pytest.param("a: https://x.org/?q=1:2", {"a": "https://x.org/?q=1:2"}, id="a link"),
    pytest.param("größe: Wie groß.", {"größe": "Wie groß."}, id="unicode name"),
    pytest.param("a:", {"a": ""}, id="no text"),
    pytest.param("a: first\na: second", {"a": "first"}, id="the first of two wins"),
    pytest.param("nothing of the kind", {}, id="no entry"),
    pytest.param("std::vector", {}, id="two colons are no entry"),
]


@pytest.mark.parametrize(("entries", "parameters"), PARAMETERS)
@pytest.mark.parametrize("head", ["Args", "Parameters"])
def test_google_entries_describe_parameters(entries, parameters, head):
    indented = entries.replace("\n", "\n        ")
    doc = f"Do it.\n\n    {head}:\n        {indented}\n\n    Returns:\n        r: not a parameter\n    "
    assert parse(doc) == Docstring("Do it.", parameters)
    assert parse(inspect.cleandoc(doc)) == Docstring("Do it.", parameters)


def test_every_section_of_parameters_is_read():
    doc = "Do.\n\nArgs:\n    a: A.\n\nKeyword Args:\n    b: B.\n\nOther Parameters:\n    c: C."
    assert parse(doc).parameters == {"a": "A.", "b": "B.", "c": "C."}


def test_a_section_ends_where_the_indentation_does():
    assert parse("Do.\n\nArgs:\n    a: A.\nb: not an entry").parameters == {"a": "A."}


def test_a_section_on_the_first_line_is_read():
    assert parse("Args:\n        a: A.\n        b: B.\n    ").parameters == {"a": "A.", "b": "B."}


FOREIGN = [
    pytest.param(
        """Add numbers.

        Both of them.

        Parameters
        ----------
        a, b : int
            The `pair`: "of"
            numbers.

            And more.
        mode : {'x', 'y'}, optional
            How.
        *args
            The rest.
        bare

        Other Parameters
        ----------------
        c : dict[str, int], default=None
            See.

        Returns
        -------
        int
            Sum.
        """,
        {"a": 'The `pair`: "of" numbers. And more.', "b": 'The `pair`: "of" numbers. And more.', "mode": "How."}
        | {"args": "The rest.", "bare": "", "c": "See."},
        id="numpy",
    ),
    pytest.param(
        """Add numbers.

        Both of them.

        :param a: The `first`: "of"
            two.
        :param int b: The second.
        :parameter c: Third.
        :arg dict[str, int] d: Fourth.
        :type a: int
        :returns: Sum.
        """,
        {"a": 'The `first`: "of" two.', "b": "The second.", "c": "Third.", "d": "Fourth."},
        id="sphinx",
    ),
]


@pytest.mark.parametrize(("doc", "parameters"), FOREIGN)
def test_numpy_and_sphinx_styles_are_read(doc, parameters):
    assert parse(doc) == Docstring("Add numbers.\n\nBoth of them.", parameters)


def test_styles_may_be_mixed():
    doc = "Add.\n\nArgs:\n    a: A.\n\nNotes\n-----\nMore.\n"
    assert parse(doc) == Docstring("Add.", {"a": "A."})
    doc = "Add.\n\nArgs:\n    a: A.\n\n:param b: B.\n:returns: Sum.\n"
    assert parse(doc) == Docstring("Add.", {"a": "A.", "b": "B."})


def test_a_sphinx_docstring_of_one_line_is_read():
    assert parse(":param a: The first.") == Docstring("", {"a": "The first."})


@pytest.mark.parametrize(
    "doc",
    [
        "Add.\n\nParameters\n----------\na : in t ) (\n  odd indentation\n9 : x\n    y\n",
        "Add.\n\n:param: nothing\n:param a b c d: much\n:param x(: odd\n:type x:\n",
        "Add.\n\nParameters\n----------\nx : " + "[" * 50_000,
        "Add.\n\nParameters\n----------\n\n\n",
        "Add.\n\n:param \0 x: y",
        "Add.\n\n:param x: y\n:param x: z\n:type x: a\n:type x y: b\n:raises: c\n:return",
        "Add.\n\n:type x: " + "a." * 3_000 + "b\n:param x: y",
    ],
)
def test_a_malformed_foreign_section_costs_only_itself(doc, caplog):
    with caplog.at_level(logging.DEBUG, logger="griffe"):
        assert parse(doc).prose == "Add."
    assert caplog.records == []


def test_a_foreign_docstring_longer_than_people_write_gives_its_prose_alone():
    entries = "x : int\n    The one.\n"
    assert parse("Add.\n\nParameters\n----------\n" + entries * 1_000) == Docstring("Add.", {"x": "The one."})
    assert parse("Add.\n\nParameters\n----------\n" + entries * 10_000) == Docstring("Add.", {})


HOSTILE = {
    "no newline": "a" * 1_000_000,
    "colons": ":" * 1_000_000,
    "spaces": " " * 1_000_000,
    "newlines": "\n" * 1_000_000,
    "tabs": "\t" * 1_000_000,
    "staircase": "Args:\n" + "\n".join(" " * i + "x: y" for i in range(1, 1_400)),
    "heads": "Args:\n" * 160_000,
    "a padded head": "Args:" + " " * 1_000_000 + "x",
    "names": "Args:\n  " + "a, " * 330_000,
    "open types": "Args:\n  x " + "(" * 1_000_000,
    "closed types": "Args:\n  x (" + ") " * 500_000,
    "backticks": "Args:\n  " + "`" * 1_000_000,
    "stars": "Args:\n  " + "\\*" * 500_000,
    "entries": "Args:\n" + "".join(f"  x{i}: y\n" for i in range(80_000)),
    "continuations": "Args:\n  a: b\n" + "    c\n" * 160_000,
    "underline": "Parameters\n" + "-" * 1_000_000,
    "underlines": "Parameters\n--\n" * 70_000,
    "titles": "a b c\n--\n" * 110_000,
    "fields": ":param x: y\n" * 80_000,
    "open field": ":param" + " x" * 500_000,
    "open fields": "\n :param x y" * 80_000,
    "numpy entries": "Parameters\n---\n" + "x : int\n    d\n" * 7_000,
    "numpy blanks": "Parameters\n---\n" + "\n" * 90_000,
    "numpy default": "Parameters\n---\nx : a," + " ," * 45_000 + "b",
    "sphinx continuations": ":param a: b\n" + "  c\n" * 24_000,
    "odd characters": "\ud800\0\u2028\x1c\x85" * 200_000,
}


@pytest.mark.parametrize("doc", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_docstring_is_read_in_linear_time(doc):
    start = time.process_time()
    parse(doc)
    assert time.process_time() - start < 5  # a quadratic reader takes minutes


@pytest.mark.parametrize("doc", [42, b"bytes", object(), property()])
def test_a_docstring_that_is_no_text_says_nothing(doc):
    assert parse(doc) == Docstring("", {})


def test_griffe_is_imported_only_for_a_style_that_needs_it():
    program = """
import sys
from toolcrib.schema.docstring import parse
parse("Add.\\n\\nArgs:\\n    a: A.\\n\\nReturns:\\n    Sum -- or === not.")
parse("Add.\\n\\nReturns\\n-------\\nint")
assert "griffe" not in sys.modules
parse("Add.\\n\\nParameters\\n----------\\na : int\\n    A.")
assert "griffe" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
