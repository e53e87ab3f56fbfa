"""A place in a SELECT, shown with the line and a mark under it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from spark_mv.explain.analysis import explain_text
from spark_mv.explain.judgement import judge
from spark_mv.explain.mark import mark
from spark_mv.explain.parts import table

pytestmark = pytest.mark.unit
LETTERS = st.text("ab (),'`._日本ｘ👍é\u0301\t\x1b\u202e\r", max_size=80)


@pytest.mark.parametrize(
    "sql,place,what,shown,marked",
    [
        ("select rand()", (1, 8), "rand", "1:8 | select rand()", "    |        ^^^^"),
        ("select\n  RAND()", (2, 3), "rand", "2:3 |   RAND()", "    |   ^^^^"),
        ("select '日本', now()", (1, 14), "now", "1:14 | select '日本', now()", "     |                ^^^"),
        ("a\tb\tnow()", (1, 5), "now", "1:5 | a   b   now()", "    |         ^^^"),
        ("from `a b`.v, c", (1, 6), "uuid", "1:6 | from `a b`.v, c", "    |      ^^^^^^^"),
        ("where a >\n 1", (1, 7), "a >\n 1", "1:7 | where a >", "    |       ^^^"),
        ("select", (1, 7), "", "1:7 | select", "    |       ^"),
        ("a\r\nb", (1, 1), "", "1:1 | a", "    | ^"),
        ("\x1b[31m now()", (1, 7), "now", "1:7 | [31m now()", "    |      ^^^"),
    ],
)
def test_mark(sql: str, place: tuple[int, int], what: str, shown: str, marked: str) -> None:
    assert mark(sql, *place, what) == (shown, marked)


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (2, 1), (1, 10), (-1, 1)])
def test_no_such_place(place: tuple[int, int]) -> None:
    assert mark("select 1", *place) == ()


def test_a_long_line_is_cut_around_the_place() -> None:
    sql = "select " + "aaaa, " * 40 + "rand() as x" + ", bbbb" * 40
    shown, marked = mark(sql, 1, 7 + 240 + 1, "rand", 60)
    assert cell_len(shown) <= 60 and shown.startswith("1:248 | …") and shown.endswith("…")
    start, end = marked.index("^"), len(marked)
    assert shown[start:end] == "rand"
    assert shown[:start].count("aaaa") >= 3 and shown[end:].count("bbbb") >= 1


def test_what_is_longer_than_the_line_is_cut_itself() -> None:
    shown, marked = mark("where " + "a" * 300, 1, 7, "a" * 300, 50)
    assert cell_len(shown) <= 50 and marked.count("^") == shown.count("a") + 1


@given(
    before=LETTERS,
    what=st.sampled_from(["rand", "ai_gen(x)", "日本()", "`a b`"]),
    after=LETTERS,
    width=st.integers(30, 120),
)
def test_the_mark_stands_under_what_is_meant(before: str, what: str, after: str, width: int) -> None:
    """Whatever stands around: tabs, wide and combining characters, control characters, however long."""
    shown, marked = mark(f"x\n{before}{what}{after}\ny", 2, len(before) + 1, what, width)
    assert cell_len(shown) <= width and cell_len(marked) <= width
    assert not set(shown) & set("\t\x1b\u202e\r\n")
    above, found = "", ""
    start, stop = marked.index("^"), len(marked)
    for character in shown:
        here = cell_len(above)
        found += character if start <= here and cell_len(above + character) <= stop and cell_len(character) else ""
        above += character
    assert found == what


@given(LETTERS, st.integers(-1, 3), st.integers(-1, 90), st.integers(0, 20))
def test_no_place_is_too_odd(sql: str, line: int, column: int, width: int) -> None:
    lines = mark(sql, line, column, "x", width)
    assert len(lines) in (0, 2) and (not lines or "^" in lines[1])


SQL = """select o.id,
       ai_classify(o.body, array('a', 'b')) as topic,
       rand() as draw, 1 + o.id as same
from orders as o
where o.created > current_date - 30
"""


def test_explain_marks_columns_predicates_and_errors() -> None:
    judged = judge(SQL, unique_key=["nope"], model="m")
    lines = explain_text(judged, model="m", notes=["said before"]).splitlines()
    assert lines[1] == "  note: said before"
    assert lines[2].startswith("  error UNKNOWN_UNIQUE_KEY")
    topic = next(i for i, line in enumerate(lines) if line.startswith("  topic "))
    assert lines[topic + 1 : topic + 3] == [
        "    2:8 |        ai_classify(o.body, array('a', 'b')) as topic,",
        "        |        ^^^^^^^^^^^",
    ]
    assert "    5:7 | where o.created > current_date - 30" in lines
    assert "        |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^" in lines


def test_one_cause_of_several_columns_is_shown_once() -> None:
    sql = "select id, r as a, r + 1 as b from (select id, rand() as r from t)"
    text = explain_text(judge(sql, unique_key=["id"]), width=80)
    columns = text.split("\n\ncolumns\n")[1].split("\n\n")[0]
    assert columns.count("^^^^") == 1 and columns.count("rand (line 1") == 2


def test_errors_are_marked_where_they_are() -> None:
    text = explain_text(judge("select id from t\ngroup by id, rand()", unique_key=["id"]))
    before, after = text.split("2:14 | group by id, rand()\n")[:2]
    assert "PER_ROW_IN_GROUP_BY" in before and after.splitlines()[0].endswith("|              ^^^^")


def test_other_peoples_texts_cannot_talk_to_the_terminal() -> None:
    text = explain_text(judge("select id as `a\x1b[31mb` from t", unique_key=["id"]), model="m\x1b]0;x\x07")
    assert "\x1b" not in text and "\x07" not in text


def test_columns_stay_below_each_other_beside_wide_letters() -> None:
    rows = table([("日本", "x"), ("abcdef", "y")])
    assert [cell_len(row[: row.index(last)]) for row, last in zip(rows, "xy", strict=True)] == [10, 10]
