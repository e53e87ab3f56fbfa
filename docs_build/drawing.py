"""Small SVG pictures that follow the page: they take the colours of mkdocs-material where they stand in a page of the site,
and light or dark ones of their own where they are shown as a file (in the README)."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

STYLE = """
svg[role=img]{--ink:var(--md-default-fg-color,#24292f);--dim:var(--md-default-fg-color--light,#57606a);--page:var(--md-default-bg-color,#fff);
--kept:#7a9cc6;--new:#3f9d63;--changed:#d69a2d;--gone:#c9605b;--soft:rgba(122,156,198,.16);font-family:system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){svg:root{--ink:#e6edf3;--dim:#9da7b1;--page:#0d1117}}
svg[role=img] text{fill:var(--ink);font-size:13px}
svg[role=img] .dim{fill:var(--dim);font-size:12px}
svg[role=img] .big{font-size:15px;font-weight:600}
svg[role=img] .strong{font-weight:600}
svg[role=img] .ink{stroke:var(--ink);fill:none;stroke-width:1.3}
svg[role=img] .line{stroke:var(--dim);fill:none;stroke-width:1}
svg[role=img] .kept{fill:var(--kept)}
svg[role=img] .new{fill:var(--new)}
svg[role=img] .changed{fill:var(--changed)}
svg[role=img] .box{fill:var(--soft);stroke:var(--dim);stroke-width:1}
svg[role=img] .other{fill:none;stroke:var(--dim);stroke-width:1.5;stroke-dasharray:4 3}
svg[role=img] .gone{fill:none;stroke:var(--gone);stroke-width:1.5;stroke-dasharray:4 3}
"""


@dataclass
class Drawing:
    """Shapes on a sheet of so many pixels. `title` and `about` are read out by screen readers."""

    width: int
    height: int
    title: str
    about: str
    shapes: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str, round_: float = 3) -> None:
        size = f'width="{width:g}" height="{height:g}" rx="{round_:g}"'
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" {size} class="{kind}"/>')

    def box(self, x: float, y: float, width: float, height: float, head: str, *lines: str) -> None:
        """A box with a heading and lines below it, centred."""
        self.rect(x, y, width, height, "box", 6)
        top = y + height / 2 - 8.5 * len(lines) + 5
        self.text(x + width / 2, top, head, "strong", "middle")
        for number, line in enumerate(lines, 1):
            self.text(x + width / 2, top + 17 * number, line, "dim", "middle")

    def arrow(self, x1: float, y1: float, x2: float, y2: float, words: str = "") -> None:
        self.shapes.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="ink" marker-end="url(#tip)"/>')
        if words:
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - 6, words, "dim", "middle")

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> None:
        self.shapes.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"/>')

    def svg(self) -> str:
        """The file's text."""
        tip = '<marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:var(--ink)"/></marker>'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-label="{escape(self.title)}" style="max-width:{self.width}px;width:100%;height:auto">',
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(self.about)}</desc>",
                f"<style>{STYLE.strip()}</style>",
                f"<defs>{tip}</defs>",
                *self.shapes,
                "</svg>",
                "",
            ]
        )
