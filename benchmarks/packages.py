"""A dbt package's own integration tests on Spark, as plain `type: spark` and as `type: spark_mv`, node by node.

`python benchmarks/packages.py dbt-expectations --with dbt-date` takes folders with the packages' own repositories. Each side gets a
copy of them, an empty catalogue and Delta for its tables; `packages.yml` names the folders instead of releases. What is compared is `dbt build`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from dbt_process import DELTA, OURS, PLAIN, write_yaml

GOOD = ("success", "pass")
#: many small statements: interpreted, and without 200 parts of a handful of rows
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.enabled": "false",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path, help="the package's repository")
    parser.add_argument("--with", dest="needed", type=Path, action="append", default=[], help="a package it needs")
    parser.add_argument("--suite", default="integration_tests", help="folder of its suite in the repository")
    parser.add_argument("--target", default="spark", help="name of the target, where the package asks for it")
    parser.add_argument("--before", action="append", default=[], help="a run-operation that its suite starts with")
    parser.add_argument("--without-target-type", action="store_true", help="packages see type `spark_mv`")
    parser.add_argument("--ansi-off", action="store_true", help="as dbt-spark's session has it")
    parser.add_argument("--side", choices=[OURS, PLAIN], action="append", help="one side alone")
    parser.add_argument("--select", nargs="*", default=[], help="of dbt build")
    parser.add_argument("--keep", type=Path, help="where copies and logs stay")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = asked.keep or Path(temporary)
        found = {}
        for side in asked.side or (PLAIN, OURS):
            suite = make_suite(root / side, asked, profile(side, asked))
            found[side] = build(suite, asked.before, asked.select)
            print(side, dict(sorted(Counter(f"{kind} {status}" for kind, status, _ in found[side].values()).items())))
    if len(found) == 2:
        compare(found[PLAIN], found[OURS])


def profile(side: str, asked: argparse.Namespace) -> dict[str, Any]:
    """The target: an embedded session with Delta."""
    common = {"method": "session", "schema": "suite", "threads": 2}
    if side == PLAIN:
        settings = {**DELTA, **SMALL, "spark.sql.sources.default": "delta"}
        return {**common, "type": "spark", "host": "localhost", "server_side_parameters": settings}
    seen = {} if asked.without_target_type else {"target_type": "spark"}
    ansi = {"spark.sql.ansi.enabled": "false"} if asked.ansi_off else {}
    return {**common, "type": "spark_mv", **seen, "spark_config": {**SMALL, **ansi}}


def make_suite(folder: Path, asked: argparse.Namespace, target: dict[str, Any]) -> Path:
    """Copies of the packages, which find each other in folders, and the suite with a profile of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    packages = [*asked.needed, asked.package]
    places = [folder / one.name for one in packages]
    for one, place in zip(packages, places, strict=True):
        shutil.copytree(one, place)
        (place / "packages.yml").unlink(missing_ok=True)
    suite = places[-1] / asked.suite
    (suite / "package-lock.yml").unlink(missing_ok=True)
    write_yaml(suite / "packages.yml", {"packages": [{"local": str(place)} for place in places]})
    name = yaml.safe_load((suite / "dbt_project.yml").read_text(encoding="utf-8"))["profile"]
    write_yaml(suite / "profiles.yml", {name: {"target": asked.target, "outputs": {asked.target: target}}})
    return suite


def build(suite: Path, before: list[str], select: list[str]) -> dict[str, tuple[str, str, str]]:
    """Node → kind, status, message, after `dbt build`."""
    program = str(Path(sys.executable).with_name("dbt"))
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_PROFILES_DIR": str(suite)}
    chosen = ["--select", *select] if select else []
    for words in (["deps"], *(["run-operation", one] for one in before), ["build", "--full-refresh", *chosen]):
        done = subprocess.run([program, *words], cwd=suite, env=environment, capture_output=True, text=True)
        (suite / f"{words[0]}.out").write_text(done.stdout + done.stderr, encoding="utf-8")
    results = suite / "target" / "run_results.json"
    if not results.exists():
        print(f"nothing was built: {' '.join(done.stdout.split())[-600:]}")
        return {}
    return {
        one["unique_id"]: (one["unique_id"].split(".")[0], one["status"], " ".join(str(one["message"]).split())[:300])
        for one in json.loads(results.read_text(encoding="utf-8"))["results"]
    }


def compare(plain: dict[str, tuple[str, str, str]], ours: dict[str, tuple[str, str, str]]) -> None:
    """Prints how many nodes hold on both sides, on one and on none, and names those of one."""
    none = ("", "absent", "")
    sides = {
        node: (plain.get(node, none)[1] in GOOD, ours.get(node, none)[1] in GOOD) for node in sorted({*plain, *ours})
    }
    both, only_plain, only_ours, neither = (
        [node for node, held in sides.items() if held == wanted]
        for wanted in ((True, True), (True, False), (False, True), (False, False))
    )
    print(f"both {len(both)}, {PLAIN} alone {len(only_plain)}, {OURS} alone {len(only_ours)}, neither {len(neither)}")
    for title, nodes, other in ((f"{PLAIN} alone", only_plain, ours), (f"{OURS} alone", only_ours, plain)):
        for node in nodes:
            print(f"{title}: {node}: {' '.join(other.get(node, none)[1:])}")
    for node in neither:
        print(
            f"neither: {node}: {' '.join(plain.get(node, none)[1:])[:160]} | {' '.join(ours.get(node, none)[1:])[:160]}"
        )


if __name__ == "__main__":
    main()
