"""The documentation as a site: it builds strictly, fetches nothing, and can be read and searched from its folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT

sys.path.insert(0, str(ROOT / "tests" / "report"))
from browser import PATH, Browser

pytestmark = pytest.mark.unit

# types again until something is found: what is typed before the theme's scripts have started is lost
SEARCHED = """(() => {
  const input = document.querySelector('.md-search__input');
  input.focus();
  input.value = 'freeze_where';
  input.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  return document.querySelectorAll('.md-search-result__item').length > 3;
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_it_builds_and_fetches_nothing(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        html = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)[^>]+src="(?:https?:)?//[^"]+"', html)
        fetched += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect|preload)"[^>]*href="(?:https?:)?//[^"]+"', html)
        assert fetched == [], page
        assert "<!-- generated" not in html and "<!-- include" not in html, page
    listed = (site / "reference" / "codes.html").read_text(encoding="utf-8")
    assert "HISTORY_GONE" in listed and "raise the source" in listed
    assert "Usage: spark-mv explain" in (site / "reference" / "operations.html").read_text(encoding="utf-8")


@pytest.mark.skipif(PATH is None, reason="no Chromium is installed")
def test_it_is_searched_from_its_folder(site: Path, tmp_path: Path) -> None:
    """Without a server, where a browser starts no worker and fetches no file."""
    browser = Browser(tmp_path / "profile")
    try:
        page = (site / "reference" / "config.html").as_uri()
        browser.open(page, 390, 844, ready="!!document.querySelector('.md-search__input')")
        assert browser.script("document.documentElement.scrollWidth") <= 390
        browser.wait(SEARCHED)
        found = browser.script("[...document.querySelectorAll('.md-search-result__item a')].map(a => a.href).join(' ')")
        assert f"{site.as_uri()}/reference/config.html" in found
        assert browser.complaints() == [] and not [one for one in browser.requests() if not one.startswith("file:")]
    finally:
        browser.close()
