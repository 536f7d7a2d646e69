from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest

from toolcrib import ToolCall, Toolset, call_tools
from toolcrib.builtin import calculate

VALUES = {
    "1 + 1": 2,
    "2 * (3 + 4)": 14,
    "7 // 2": 3,
    "7 % 4": 3,
    "2 ** 10": 1024,
    "2 ** -1": 0.5,
    "-8 ** 2": -64,
    "9.0 ** 300": 9.0**300,
    "2 ** 9999": 2**9999,
    "sqrt(2) * 3": math.sqrt(2) * 3,
    "log(8, 2)": 3.0,
    "sin(pi / 2)": 1.0,
    "factorial(20)": math.factorial(20),
    "max(1, 2)": 2,
    "mean([1, 2, 6])": 3,
    "sum([0.5, 0.5])": 1.0,
    "round(2.348, 2)": 2.35,
    "round(2.6)": 3,
    "3 > 2": True,
    "1 if 2 > 3 else 5": 5,
    "3 × 4 ÷ 2 − 1": 5.0,  # noqa: RUF001  what models copy from a page
    " 1 ": 1,
}

# What is hostile, wrong or endless, and a word of the reason.
REFUSED = {
    "9 ** 9 ** 9": "too large",
    "2 ** 10001": "too large",
    "9 ** 4000 * 9 ** 4000": "too large",
    "pow(10, 10 ** 9)": "too large",
    "factorial(10 ** 6)": "up to 1,000",
    "comb(10 ** 9, 5)": "up to 1,000",
    "round(5, -10 ** 9)": "digits",
    "1e308 * 10": "too large",
    "10 ** 400 * 1.0": "too large",
    "exp(1000)": "too large",
    "'a' * 10 ** 9": "not a number",
    "[1, 2] * 10 ** 9": "not a number",
    "1 << 100000": "no arithmetic",
    "2 ^ 3": r"write \*\*",
    "[x for x in range(10 ** 9)]": "no arithmetic",
    "{1: 2}": "no arithmetic",
    "f'{1}'": "no arithmetic",
    "lambda: 1": "no arithmetic",
    "().__class__": "no arithmetic",
    "__import__('os')": "no function",
    "open('x')": "no function",
    "exec(1)": "no function",
    "sqr(2)": "sqrt",
    "x + 1": "no name",
    "1; 2": "cannot be read",
    "a = 1": "cannot be read",
    "2 +": "cannot be read",
    "1 / 0": "by zero",
    "sqrt(-1)": "no value",
    "(-8) ** (1 / 3)": "real",
    "1j * 1j": "not a number",
    "1,000": "leave the comma out",
    "min([])": "takes numbers",
    "sqrt": r"sqrt\(2\)",
    "mean(mean)": "takes numbers",
    "sqrt(2, 3)": "not so many",
    "gcd(2.5, 1)": "does not take",
    "max(*[1, 2])": "no arithmetic",
    "(1, 2)[0]": "no arithmetic",
    "None": "not a number",
    "factorial(1000) * factorial(1000)": "too large",
    "-" * 900 + "1": "too deep",
    "(" * 400 + "1" + ")" * 400: "cannot be read",
}


@pytest.mark.parametrize("expression", VALUES)
def test_an_expression_has_its_value(expression):
    expected = VALUES[expression]
    assert calculate(expression) == (expected if isinstance(expected, int) else pytest.approx(expected))


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_no_arithmetic_or_runs_away_is_refused_with_its_reason(expression):
    (result,) = call_tools([ToolCall("1", "calculate", {"expression": expression})], Toolset([calculate]))
    assert result.kind == "failed"
    assert re.search(REFUSED[expression], result.text), result.text


@pytest.mark.parametrize("expression", ["", "1+" * 600 + "1"])
def test_an_expression_that_is_empty_or_too_long_is_an_argument_that_does_not_fit(expression):
    (result,) = call_tools([ToolCall("1", "calculate", {"expression": expression})], Toolset([calculate]))
    assert result.kind == "invalid_arguments"


def test_a_missing_package_is_told_with_its_extra():
    code = (
        "import sys; sys.modules['simpleeval'] = None\n"
        "from toolcrib import MissingExtraError; from toolcrib.builtin import calculate\n"
        "try: calculate('1')\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "toolcrib[math]" in done.stdout
