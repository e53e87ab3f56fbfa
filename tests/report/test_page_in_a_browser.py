"""The page in a real Chromium: no request, both colour schemes, phone, contrast, labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browser import PATH, Browser
from project_facts import HOSTILE, NOW, model, project, record, run

from spark_mv.report.page import report_html
from spark_mv.report.serve import Rebuilt, make_server

pytestmark = [pytest.mark.unit, pytest.mark.skipif(PATH is None, reason="no Chromium is installed")]
DRAWN = "[...document.querySelectorAll('.plot')].every(p => p.querySelector('svg') || p.textContent)"
CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim() || e.closest('script, style, .unseen, .skip') || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), ink = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const [a, b] = [light(rgba(ink)), light(behind(e))], ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push([node.textContent.trim().slice(0, 40), ratio.toFixed(2), ink]);
  }
  return bad;
})()
"""
UNNAMED = """
[...document.querySelectorAll('a, summary, [role], figure, table, nav, section')].filter(e =>
  !e.closest('[aria-hidden=true]') && !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim())).map(e => e.outerHTML.slice(0, 80))
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    runs = [
        run(NOW - 3600 * 8 * n, invocation_id=f"i{n}", strategy="ROW_BASED" if n % 3 else "NO_OP") for n in range(20)
    ]
    failed = run(status="error", message="x" * 900 + HOSTILE)
    due = model("due", record=record(next_change_at="2026-02-02 00:00:00", ai_pending=4))
    facts = project(model(runs=tuple(runs)), model(HOSTILE, runs=(failed, *runs[:3])), due, model("never", exists=False, record=None, runs=()))  # fmt: skip
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report_html(facts), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_it_loads_nothing_fits_and_can_be_read(browser: Browser, page: str, width: int, dark: bool) -> None:
    browser.open(page, width, 900, dark, DRAWN)
    assert browser.requests() == [page]
    assert browser.complaints() == []
    assert browser.script("document.documentElement.scrollWidth") <= width
    drawn = browser.script("document.querySelectorAll('.plot svg').length")
    assert drawn == browser.script("document.querySelectorAll('.plot').length") > 5
    assert browser.script(CONTRAST) == []
    assert browser.script(UNNAMED) == []
    paper = browser.script("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(22, 23, 26)") is dark
    assert browser.script("document.querySelectorAll('img, iframe').length") == 0


def test_by_keyboard_and_on_paper(browser: Browser, page: str) -> None:
    browser.open(page, ready=DRAWN)
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", **key)
    assert browser.script("document.activeElement.className") == "skip"
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.script("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(browser.ask("Page.printToPDF")["data"]) > 10_000


def test_a_year_of_fifty_models(browser: Browser, tmp_path: Path) -> None:
    """It opens, leads by the keyboard to the last model, whose charts are drawn then, and is printed without a year of runs."""
    year = tuple(run(NOW - 86400 * day, invocation_id=f"i{day}", seconds=1.0) for day in range(365))
    html = report_html(project(*(model(f"m{n:02d}", runs=year) for n in range(50))))
    assert len(html) < 12_000_000
    assert "AI calls by week" in html and "53 weeks, from 2025-02-03 to 2026-02-02; in all 292,000 calls." in html
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    browser.open(file.as_uri(), 390, 900, dark=True)
    assert browser.requests() == [file.as_uri()] and browser.complaints() == []
    assert browser.script("document.documentElement.scrollWidth") <= 390
    assert (
        browser.script("document.querySelectorAll('.plot').length")
        > 200
        > 20
        > browser.script("document.querySelectorAll('.plot svg').length")
    )
    browser.script("document.querySelector('nav li:last-child a').focus()")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
    browser.wait("location.hash && !!document.querySelector('section.model:last-of-type .plot svg')")
    browser.wait("Math.abs(document.querySelector('section.model:last-of-type h2').getBoundingClientRect().top) < 600")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    shown = "[...document.querySelectorAll('section.model:last-of-type .runs tbody tr')].filter(r => r.getClientRects().length).length"
    assert browser.script(shown) == 30


def test_the_served_page_reloads_itself(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    file.write_text(report_html(project(model("before")), refresh=True, charts=False), encoding="utf-8")
    server = make_server(Rebuilt(file, [], file), 0)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.open(
            f"http://127.0.0.1:{server.server_address[1]}/", ready="document.body.textContent.includes('before')"
        )
        browser.wait("performance.getEntriesByType('resource').some(e => e.name.endsWith('/version'))")
        file.write_text(report_html(project(model("after")), refresh=True, charts=False), encoding="utf-8")
        browser.wait("document.body.textContent.includes('after')")
        assert browser.complaints() == []
    finally:
        server.shutdown()
        server.server_close()


def test_a_condition_that_fails_is_not_true_yet(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.wait("window.tries = (window.tries || 0) + 1, window.tries > 2 || document.nothing.textContent")
    assert browser.script("window.tries") == 3
