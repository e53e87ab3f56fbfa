"""The page of `spark-mv report`, without Spark and without a browser."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from project_facts import HOSTILE, NOW, SQL, model, project, record, run

from spark_mv.cli import main
from spark_mv.report.facts import ProjectFacts, to_json
from spark_mv.report.page import report_html
from spark_mv.report.serve import Rebuilt, make_server
from spark_mv.report.sql_places import judged
from spark_mv.report.view import MOST_RUNS, page_view
from spark_mv.spark.adapter.hidden import Hidden

pytestmark = pytest.mark.unit


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def ids_are_well_used(elements: Elements) -> None:
    ids = [a["id"] for _, a in elements.found if "id" in a]
    assert len(ids) == len(set(ids))
    named = [a[k] for _, a in elements.found for k in ("aria-labelledby", "aria-describedby") if k in a]
    links = [str(a["href"])[1:] for a in elements.of("a")]
    assert set(named) | set(links) <= set(ids)


def test_what_it_says() -> None:
    html = report_html(project(model(), model("broken", runs=(run(status="error", message="no such table"),))))
    elements = Elements(html)
    ids_are_well_used(elements)
    assert '<mark class="l-nondeterministic" title="nondeterministic">rand<' in html
    assert '<mark class="l-ai" title="ai">ai_analyze_sentiment<' in html
    assert "no such table" in html and "0.0123" in html and "desk.tickets" in html
    assert {"header", "main", "nav", "footer"} <= {tag for tag, _ in elements.found}
    assert len(elements.of("caption")) == len(elements.of("table")) > 5
    assert all("scope" in attributes for attributes in elements.of("th"))
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))


def test_charts_have_their_numbers_in_words() -> None:
    html = report_html(project(model()))
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', html)
    charts = json.loads(text)
    assert {f"c-{name}" for name in ("overview-0", "model-1-0", "model-1-1")} <= set(charts)
    assert all(f'id="{name}-s">1 ' in html for name in charts)


def hostile_project(text: str) -> ProjectFacts:
    facts = model(
        text, relation=text, path=text, description=text, sql=text, unique_key=(text,), settings={text: text}, reads={text: text},
        read_by=(text,), runs=(run(status="error", message=text, strategy=text, reasons=text, candidates=text), run(NOW - 9)),
    )  # fmt: skip
    base = project(facts)
    return replace(base, name=text, target=text, connection=text, time_zone=text, notes=(text,), ai=(replace(base.ai[0], function=text, model=text),))  # fmt: skip


def tags(html: str) -> list[str]:
    return [tag for tag, _ in Elements(html).found]


def test_hostile_texts_stay_texts() -> None:
    hostile = report_html(hostile_project(HOSTILE))
    assert tags(hostile) == tags(report_html(hostile_project("harmless")))
    assert "\x1b" not in hostile and "\u202e" not in hostile
    assert "script-src &#39;sha256-" in hostile


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=60))
def test_any_text_stays_a_text(text: str) -> None:
    html = report_html(hostile_project(text or "x"), charts=False)
    html.encode()
    assert not {"img", "iframe", "object"} & set(tags(html))
    assert len(Elements(html).of("script")) == 0


def test_no_model_and_a_model_that_only_failed() -> None:
    assert "has no model with" in report_html(project(), charts=False)
    only = model(exists=False, record=None, runs=(run(status="error", message="boom"),), sql="", reads={})
    html = report_html(project(only, ai=()))
    ids_are_well_used(Elements(html))
    assert "The last run failed; there is no table." in html and "the model has not been compiled" in html


def test_a_thousand_runs() -> None:
    runs = tuple(run(NOW - 600 * n, invocation_id=f"i{n}") for n in range(1000))
    html = report_html(project(model(runs=runs)), charts=False)
    assert html.count('class="what"') == MOST_RUNS and f"{1000 - MOST_RUNS} older ones" in html
    assert len(html) < 1_000_000
    (view,) = page_view(project(model(runs=runs))).models
    assert view.calls == "16,000"


def test_cost_of_an_invocation_in_which_two_asked_is_nobodys_alone() -> None:
    first, second = page_view(project(model("a"), model("b"))).models
    assert (first.cost, second.cost, first.shared) == ("–", "–", True)
    (alone,) = page_view(project(model("a"))).models
    assert (alone.cost, alone.shared) == ("0.0123", False)


def test_pieces_are_the_whole_text() -> None:
    facts = model(sql="-- comment with rand()\n" + SQL.replace("\n", "\r\n", 1) + "\n-- ä rand()")
    found = judged(facts, project(facts))
    assert "".join(piece.text for piece in found.pieces) == facts.sql
    assert [p.text for p in found.pieces if p.level] == [
        "ai_analyze_sentiment", "rand", "current_timestamp", "current_date"
    ]  # fmt: skip
    broken = judged(replace(facts, sql="select from where ("), project())
    assert broken.errors and "".join(p.text for p in broken.pieces) == "select from where ("


def test_secrets_are_taken_out() -> None:
    hidden = Hidden(("tops3cret",))
    said = hidden.run(
        run(message="at jdbc:x://me:pa55word@host with tops3cret and Authorization: Bearer abcdefgh12345")
    )
    assert said.message == "at jdbc:x://me:*****@host with ***** and Authorization: Bearer *****"


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "facts.json"
    kept.write_text(to_json(project(model())))
    made = CliRunner().invoke(main, ["report", "--from", str(kept), "-o", str(tmp_path / "sub" / "r.html")])
    assert made.exit_code == 0 and (tmp_path / "sub" / "r.html").stat().st_size > 10_000
    assert CliRunner().invoke(main, ["report", "--from", str(tmp_path), "-o", str(kept)]).exit_code == 2


def test_the_server_answers_on_loopback_only_by_its_name(tmp_path: Path) -> None:
    facts, page = tmp_path / "facts.json", tmp_path / "r.html"
    facts.write_text(to_json(project(model())))
    rebuilt = Rebuilt(page, ["--from", str(facts)], facts)
    assert rebuilt.due(0)
    assert rebuilt.make() and not rebuilt.due(1) and "connect-src &#39;self&#39;" in page.read_text()
    server = make_server(rebuilt, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        assert urllib.request.urlopen(f"{base}/").read() == page.read_bytes()
        assert int(urllib.request.urlopen(f"{base}/version").read()) == page.stat().st_mtime_ns
        for wrong in (
            urllib.request.Request(f"{base}/etc"),
            urllib.request.Request(base, headers={"Host": "evil.example:80"}),
        ):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(wrong)
        taken = ["report", "--serve", "--port", str(server.server_address[1])]
        answer = CliRunner().invoke(main, taken)
        assert answer.exit_code == 2 and "--port names another" in answer.output
        answer = CliRunner().invoke(main, [*taken, "--from", str(tmp_path / "none.json")])
        assert answer.exit_code == 2 and "there is no file" in answer.output
        facts.write_text("{}")
        assert rebuilt.due(2) and not rebuilt.make() and "FACTS" in rebuilt.problem.upper()
        assert page.read_bytes()  # the last one stays
    finally:
        server.shutdown()
        server.server_close()


def test_every_fact_is_kept() -> None:
    assert {f.name for f in fields(ProjectFacts)} <= set(json.loads(to_json(project(model()))))


def test_a_model_that_keeps_nothing_does_not_look_as_if_it_had_lost_something() -> None:
    nothing = project(model(runs=(run(values_kept=0),)))
    assert "values kept by the last run" not in report_html(nothing)
    lost = project(model(record=record(kept={"split": "x"}), runs=(run(values_kept=0),)))
    assert "values kept by the last run" in report_html(lost)
