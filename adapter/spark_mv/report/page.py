"""One HTML file of a project's facts: style, scripts and data are in it, and its content policy lets it load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from spark_mv import __version__
from spark_mv.report.facts import ProjectFacts
from spark_mv.report.view import RUN_NUMBERS, PageView, page_view
from spark_mv.report.words import plain


def report_html(project: ProjectFacts, *, refresh: bool = False, charts: bool = True) -> str:
    """The page. `refresh`: for the server, it asks the server it came from whether it is still the newest. Charts need the
    extra `report`; without it (or with `charts` off) the tables stand alone."""
    page = page_view(project)
    library = _library() if charts else None
    draw, again = _file("draw.js"), _file("refresh.js") if refresh else ""
    scripts = [text for text in (library, draw if library else None, again) if text]
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_finalized)
    template = environment.from_string(_file("report.html.j2"))
    return template.render(
        page=page,
        numbers=RUN_NUMBERS,
        version=__version__,
        policy=_policy(scripts, refresh),
        style=Markup(_file("report.css")),
        charts=_embedded(_specs(page)) if library else "",
        library=Markup(library or ""),
        draw=Markup(draw),
        refresh=Markup(again),
    )


def _finalized(value: Any) -> Any:
    """Every text that the template shows, but for our own style and scripts, is without control characters."""
    return plain(value) if type(value) is str else value


def _specs(page: PageView) -> dict[str, Any]:
    """Chart by the id of its place, as the template numbers them."""
    named = [("overview", page.charts), *((model.anchor, model.charts) for model in page.models)]
    return {f"c-{name}-{n}": chart.spec for name, charts in named for n, chart in enumerate(charts)}


def _embedded(data: Mapping[str, Any]) -> Markup:
    """JSON within a script element: no sign in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _policy(scripts: list[str], refresh: bool) -> str:
    """Nothing is loaded, and no script runs but these: what a name or an error text might smuggle in does nothing."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    connect = "'self'" if refresh else "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


@cache
def _library() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script; None where the extra `report` is not installed."""
    try:
        import vl_convert
    except ImportError:
        return None
    bundle = str(vl_convert.javascript_bundle("window.sparkMv = {vegaEmbed};"))
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")


@cache
def _file(name: str) -> str:
    return (files("spark_mv.report") / "templates" / name).read_text(encoding="utf-8")
