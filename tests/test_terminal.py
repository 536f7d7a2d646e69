from __future__ import annotations

from toolcrib._terminal import brief, print_table, printable, seconds


def test_what_steers_a_terminal_is_removed_and_line_ends_stay():
    assert printable("a\x1b[31mb\x07\x9b2Jc\x7f\r\n\td") == "a[31mb2Jc\n\td"


def test_a_long_text_is_shown_as_the_beginning_of_one_line():
    assert brief("one\n  two\tthree ") == "one two three"
    assert brief("x" * 1_234_567) == "x" * 300 + "… (1,234,567 characters)"


def test_durations_are_shown_in_a_fitting_unit():
    assert [seconds(0.0004), seconds(0.25), seconds(12.345)] == ["0 ms", "250 ms", "12.3 s"]


def test_a_table_for_a_program_has_a_line_for_each_row_and_tabs_between_cells(capsys):
    print_table(("name", "about"), [("a", "two\nlines\tand \x1b[1mmore"), ("b", "x" * 300)])
    assert capsys.readouterr().out == f"a\ttwo lines and [1mmore\nb\t{'x' * 300}\n"
