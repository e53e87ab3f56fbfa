"""Spark settings that hold a secret: they are told to the running JVM, and stand in no command line and no file.

A command line is seen by every user of the machine, and the launcher's answer is kept in a file. What Spark needs them for
(object stores, key stores, databases) happens after the JVM has started.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.secret import NAMED_SECRET

_IN_A_VALUE = re.compile(r"://[^/\s:@]+:[^/\s@]+@|\b(?:password|passwd|pwd|secret|token)\s*=\s*[^\s;&]", re.IGNORECASE)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DBTS, _SHORTEST = "DBT_ENV_SECRET", 4
_FOR_THE_START = ("spark.jars.", "spark.submit.")
"""Settings that Spark reads before a JVM could be told anything (`spark.jars.repositories`): they stay where they are."""


def is_secret(name: str, value: str) -> bool:
    """Whether a setting is named like a secret or holds one: a password in an address, `password=…` among its parts, the value of one of dbt's
    secret variables.

    >>> is_secret("spark.hadoop.fs.s3a.secret.key", "x"), is_secret("spark.sql.ansi.enabled", "true")
    (True, False)
    """
    return bool(
        NAMED_SECRET.search(name) or _IN_A_VALUE.search(value) or any(one in value for one in _of_environment())
    )


def _of_environment() -> list[str]:
    """The values of dbt's secret variables; shorter ones stand in half of all texts."""
    return [value for name, value in os.environ.items() if name.startswith(_DBTS) and len(value) >= _SHORTEST]


@dataclass(frozen=True)
class StartSettings:
    """`shown` may stand in a command line; `properties` are Java's own (`-Dname=value`), to be set when the JVM runs."""

    shown: Mapping[str, str]
    properties: Mapping[str, str]

    def tell(self, jvm: Any) -> None:
        """Sets what was held back from the command line of a JVM, before Spark starts in it."""
        for name, value in self.properties.items():
            jvm.java.lang.System.setProperty(name, value)


def without_secrets(settings: Mapping[str, str]) -> StartSettings:
    """The settings that a JVM may be started with, without those that hold a secret."""
    needed = (_JAVA_OPTIONS, *_FOR_THE_START)
    shown = {n: value for n, value in settings.items() if n.startswith(needed) or not is_secret(n, value)}
    properties: dict[str, str] = {}
    options = shown.get(_JAVA_OPTIONS, "")
    if any(_is_secret_option(option) for option in _split(options)):
        kept = []
        for option in _split(options):
            if _is_secret_option(option):
                name, _, value = option[2:].partition("=")
                properties[name] = value
            else:
                kept.append(shlex.quote(option))
        shown[_JAVA_OPTIONS] = " ".join(kept)
    return StartSettings(shown, properties)


def _split(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:  # a quote that is not closed: Spark's launcher will say so
        return options.split()


def _is_secret_option(option: str) -> bool:
    name, _, value = option.removeprefix("-D").partition("=")
    return option.startswith("-D") and is_secret(name, value)
