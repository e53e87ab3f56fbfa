"""The `ai:` block of the profile and `config(ai={…})` of a model, checked as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

from spark_mv.ai.canary import Canary, canary_of, problem_of_canary
from spark_mv.ai.cascade import cascade_of, problem_of_cascade
from spark_mv.ai.chat import problem_of_parameters
from spark_mv.ai.declared_functions import functions_of, problem_of_functions
from spark_mv.ai.dedupe import Dedupe, dedupe_of, problem_of_dedupe
from spark_mv.ai.fitting import problem_of_call
from spark_mv.ai.prices import Price, prices_of, problem_of
from spark_mv.ai.protocol import ProviderSettings
from spark_mv.ai.providers.local import LOCAL_MODELS, MINILM
from spark_mv.ai.salt import SALT, problem_of_salt
from spark_mv.ai.secret import Secret
from spark_mv.ai.setting_types import is_text, problem_of_keep_requests, problem_of_models, problem_of_versions
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.cascade import Step
from spark_mv.query.ai_calls.keys import AiIdentity
from spark_mv.query.ai_calls.signatures import BUILT_IN, VECTORS, AiFunction
from spark_mv.query.syntax.nearest import did_you_mean

PROVIDERS = ("openai", "local", "scripted", "native")
# Only the profile may say these: a model's config would write them into the manifest.
PROFILE_ONLY = frozenset({"provider", "base_url", "api_key", "result_schema", "salt_table", "functions", "ask_from"})
# In a model's config under these names: what a run may spend and what it does with failures.
PERIODS = ("day", "month")
"""Of a project, for which there may be budgets."""
_COSTS = ("max_ai_cost", *(f"max_ai_cost_per_{period}" for period in PERIODS))
_CHOICES = {
    "on_ai_error": ("null", "keep_old", "fail"),
    "on_model_change": ("recompute", "keep"),
    "ask_from": ("auto", "executors", "driver"),
    "mode": ("direct", "batch", "auto"),
}


class AiConfigError(RefusedError):
    """The configuration is wrong; the message lists everything found, one line each."""


@dataclass(frozen=True)
class AiSettings:
    """Everything the AI functions need, with defaults. Rates are per minute over the whole job, prices per 1,000
    tokens in the user's currency, times in seconds. `max_ai_*` are budgets of one run."""

    provider: str = ""
    base_url: str | None = None
    model: str = ""
    model_version: str | None = None
    api_key: Secret | None = field(default=None, repr=False)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int = 8
    timeout_seconds: float = 60.0
    max_attempts: int = 5
    deadline_seconds: float | None = None
    chunk_seconds: float = 20.0
    retry_errors_after_hours: float = 1.0
    retry_errors_times: int = 6
    price_per_1k_input_tokens: float = 0.0
    price_per_1k_output_tokens: float = 0.0
    result_schema: str | None = None
    salt_table: str | None = None
    keep_requests: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    embedding_model: str | None = None
    embedding_models: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[AiFunction, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ask_from: str = "auto"
    rows_per_request: int = 1  # 0: auto
    split_bytes: int | None = None
    mode: str = "direct"
    batch_from: int = 1000
    batch_inputs: int = 20_000
    batch_poll_seconds: float = 30.0
    batch_price_factor: float = 0.5
    wait_minutes: float = 0.0
    prices: Mapping[str, Price] = field(default_factory=dict)
    cascade: tuple[tuple[str, str | None], ...] = ()
    on_ai_error: str = "null"
    on_model_change: str = "recompute"
    canary: Canary | None = None
    dedupe: Dedupe | None = None
    max_ai_calls: int | None = None
    max_ai_tokens: int | None = None
    max_ai_cost: float | None = None
    max_ai_calls_per_day: int | None = None
    max_ai_tokens_per_day: int | None = None
    max_ai_cost_per_day: float | None = None
    max_ai_calls_per_month: int | None = None
    max_ai_tokens_per_month: int | None = None
    max_ai_cost_per_month: float | None = None

    @classmethod
    def from_config(cls, profile_ai: Mapping[str, Any] | None, model_ai: Mapping[str, Any] | None = None) -> AiSettings:
        """The settings of one model: the profile's block overridden by the model's own.

        Raises AiConfigError listing unknown words (with the nearest right one), wrong types and missing values.
        """
        values, errors = _read(profile_ai, model_ai)
        provider = values.get("provider", "")
        if provider and provider not in PROVIDERS and "." not in provider:
            near = did_you_mean(provider, PROVIDERS)
            errors.append(f"provider {provider!r} is none of {', '.join(PROVIDERS)} or a package.module.Class{near}")
        if provider == "openai" and not values.get("api_key"):
            errors.append(
                "provider openai needs api_key, e.g. \"{{ env_var('OPENAI_API_KEY') }}\" in the profile's ai block"
            )
        if provider == "native":
            errors += _sql_functions_problems(values)
        if values.get("cascade"):
            errors += _with_cascade(values)
        if provider == "openai" and not values.get("model"):
            errors.append("provider openai needs model, the name that the endpoint knows")
        priced = (
            values.get("price_per_1k_input_tokens") or values.get("price_per_1k_output_tokens") or values.get("prices")
        )
        if values.get("mode", "direct") != "direct" and provider and provider != "openai":
            errors.append(f"mode {values['mode']!r} needs provider openai: {provider} has no batches")
        if any(values.get(word) is not None for word in _COSTS) and provider and provider != "local" and not priced:
            errors.append(
                "max_ai_cost needs a price, without which nothing costs anything: set price_per_1k_input_tokens and "
                "price_per_1k_output_tokens in the profile's ai block, or use max_ai_tokens"
            )
        if errors:
            raise _not_usable(errors)
        return cls(**values)

    @property
    def configured(self) -> bool:
        """Whether there is a provider to ask."""
        return bool(self.provider)

    def sql_function(self, name: str) -> str:
        """The SQL function that `provider: native` calls in the place of an AI function; "" for the engine's of that name."""
        return str(self.options.get(name, "")) if self.provider == "native" else ""

    def for_provider(self) -> ProviderSettings:
        """The part that goes to the workers."""
        return ProviderSettings(
            self.base_url, self.api_key, self.timeout_seconds, dict(self.options), self.rows_per_request
        )

    def identity(self) -> AiIdentity:
        """What of these settings belongs to an answer's key."""
        models: dict[str, tuple[str, str]] = {}
        if self.provider == "local":
            models = dict(LOCAL_MODELS)
        elif self.embedding_model:
            version = self.versions.get(self.embedding_model, self.embedding_model)
            models = dict.fromkeys(VECTORS, (self.embedding_model, version))
        return AiIdentity(
            model=self.model or (MINILM if self.provider == "local" else self.provider or "none"),
            model_version=self.model_version,
            parameters=dict(self.parameters),
            models=models,
            versions=dict(self.versions),
            embedding_models=self.embedding_models + ((self.embedding_model,) if self.embedding_model else ()),
            keep_old=self.keep_old,
            shared=() if self.dedupe is None else self.dedupe.statuses,
            salt=SALT if self.salt_table else "",
            cascade=tuple(Step.of(model, self._version_of(model), condition) for model, condition in self.cascade),
            problem_of=problem_of_call,
        )

    def _version_of(self, model: str) -> str:
        of_own = (self.model_version or model) if model == self.model else model
        return self.versions.get(model, of_own)

    def of_period(self, period: str) -> dict[str, int | float | None]:
        """The budgets of a project's day or month: calls, tokens and cost."""
        return {what: getattr(self, f"max_ai_{what}_per_{period}") for what in ("calls", "tokens", "cost")}

    @property
    def keep_old(self) -> bool:
        """Whether a row shows an older model's answer while the new model has not answered."""
        of_periods = (limit for period in PERIODS for limit in self.of_period(period).values())
        budgets = (self.max_ai_calls, self.max_ai_tokens, self.max_ai_cost, *of_periods)
        budgeted = any(b is not None for b in budgets)
        return self.on_model_change == "keep" or budgeted

    def price_of(self, model: str) -> Price:
        """What a model's tokens cost: its own line in `prices`, else the two prices of the profile."""
        return self.prices.get(model) or Price(self.price_per_1k_input_tokens, self.price_per_1k_output_tokens)

    def check_prices(self, models: Collection[str]) -> None:
        """Raises AiConfigError where a budget of cost is set and one of these models, which are to be asked, has no price: it would cost nothing."""
        if self.provider == "local" or self.price_per_1k_input_tokens or self.price_per_1k_output_tokens:
            return
        budgets = [word for word in _COSTS if getattr(self, word) is not None]
        unpriced = sorted(model for model in {*models} if model not in self.prices)
        if budgets and unpriced:
            raise _not_usable(
                [
                    f"{budgets[0]} needs a price of {', '.join(unpriced)}, without which it costs nothing: add it to `prices` in the profile's ai block "
                    f"(it has {', '.join(sorted(self.prices)) or 'none'}), or use max_ai_tokens"
                ]
            )

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens of the profile's model."""
        price = self.price_of(self.model)
        return (input_tokens * price.input + output_tokens * price.output) / 1000.0


_NUMBERS = {
    "requests_per_minute": int,
    "tokens_per_minute": int,
    "concurrency": int,
    "timeout_seconds": float,
    "max_attempts": int,
    "deadline_seconds": float,
    "chunk_seconds": float,
    "rows_per_request": int,
    "split_bytes": int,
    "batch_from": int,
    "batch_inputs": int,
    "batch_poll_seconds": float,
    "batch_price_factor": float,
    "wait_minutes": float,
    "retry_errors_after_hours": float,
    "retry_errors_times": int,
    "price_per_1k_input_tokens": float,
    "price_per_1k_output_tokens": float,
    "max_ai_calls": int,
    "max_ai_tokens": int,
    "max_ai_cost": float,
    **{
        f"max_ai_{what}_per_{p}": kind
        for p in PERIODS
        for what, kind in (("calls", int), ("tokens", int), ("cost", float))
    },
}
_ZERO_ALLOWED = {
    "price_per_1k_input_tokens", "price_per_1k_output_tokens", "retry_errors_after_hours", "retry_errors_times",
    "max_ai_calls", "max_ai_tokens", "max_ai_cost", "batch_price_factor", "wait_minutes",
    *(f"max_ai_{what}_per_{p}" for p in PERIODS for what in ("calls", "tokens", "cost")),
}  # fmt: skip
LEAST_PART = 100
"""Bytes of the parts of a text (split_bytes): smaller ones say nothing."""
_FUNCTION_NAME = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,2}")
_MAPPINGS = {"parameters", "versions", "options"}
_TEXTS = {"provider", "base_url", "model", "model_version", "result_schema", "embedding_model"}
_NAMES = {"model", "model_version", "embedding_model"}
_PROBLEMS: Mapping[str, Callable[[Any], str | None]] = {
    "cascade": problem_of_cascade, "canary": problem_of_canary, "dedupe": problem_of_dedupe, "prices": problem_of, "salt_table": problem_of_salt, "parameters": problem_of_parameters,
    "functions": problem_of_functions, "keep_requests": problem_of_keep_requests, "embedding_models": problem_of_models,
    "versions": problem_of_versions,
}  # fmt: skip


def check_ai_words(profile_ai: Mapping[str, Any] | None, model_ai: Mapping[str, Any] | None) -> None:
    """What holds of the blocks of a model that may ask no AI: every word is known and of the right type; nothing is missing yet.

    Raises AiConfigError with every problem found."""
    _, errors = _read(profile_ai, model_ai)
    if errors:
        raise _not_usable(errors)


def _not_usable(errors: Sequence[str]) -> AiConfigError:
    return AiConfigError("AI_CONFIG", "The AI configuration is not usable:\n" + "\n".join(f"  - {e}" for e in errors))


def _read(profile_ai: Mapping[str, Any] | None, model_ai: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """The values of the two blocks, the model's over the profile's, and what is wrong with single words."""
    errors: list[str] = []
    values: dict[str, Any] = {}
    for source, block in (("the profile's ai block", profile_ai), ("config(ai=…)", model_ai)):
        for key, value in (block or {}).items():
            problem = _problem(source, key, value)
            if problem:
                errors.append(problem)
            elif value is not None:
                values[key] = _converted(key, value)
    return values, errors


def _problem(source: str, key: str, value: Any) -> str | None:
    names = [f.name for f in fields(AiSettings)]
    if key not in names:
        return f"{source} has an unknown word {key!r}{did_you_mean(key, names)}"
    if source.startswith("config") and key in PROFILE_ONLY:
        return f"{source} may not set {key}: it belongs in the profile's ai block"
    if value is None:
        return None
    if key == "rows_per_request" and value == "auto":
        return None
    if key in _NUMBERS:
        try:
            number = _NUMBERS[key](str(value))
        except ValueError:
            return f"{source}: {key} must be a {'whole ' if _NUMBERS[key] is int else ''}number, not {value!r}"
        if not isfinite(number):
            return f"{source}: {key} must be a number, not {value!r}. Take it away where nothing is to be limited"
        if number < 0 or (number == 0 and key not in _ZERO_ALLOWED):
            return f"{source}: {key} must be {'0 or more' if key in _ZERO_ALLOWED else 'more than 0'}, not {value!r}"
        if key == "split_bytes" and number < LEAST_PART:
            return f"{source}: split_bytes must be at least {LEAST_PART}, not {value!r}: each part of a group is a request of its own"
    if key in _CHOICES and value not in _CHOICES[key]:
        return f"{source}: {key} must be one of {', '.join(_CHOICES[key])}, not {value!r}{did_you_mean(value, _CHOICES[key])}"
    if key in _MAPPINGS and not isinstance(value, Mapping):
        return (
            f"{source}: {key} must be a mapping, not {value!r}"
            if key != "options"
            else f"{source}: options must be a mapping"
        )
    if key in _TEXTS and not is_text(value):
        return f"{source}: {key} must be a text, not {value!r}"
    if key in _NAMES and not str(value).strip():
        return f"{source}: {key} is empty, and answers of another {key} are not this one's. Name one, or leave the word out"
    if key == "api_key" and not is_text(value):
        return f"{source}: api_key must be a text"
    if key in _PROBLEMS and (problem := _PROBLEMS[key](value)):
        return f"{source}: {problem}"
    return None


def _with_cascade(values: dict[str, Any]) -> list[str]:
    """What is wrong with a cascade beside the other words. The last of its models is `model` from now on."""
    errors, steps = [], values["cascade"]
    if values.get("provider", "openai") != "openai":
        errors.append(
            f"cascade needs provider openai: {values['provider']} does not say how sure it is of an answer. Take cascade away, or "
            "ask an OpenAI-compatible endpoint"
        )
    if values.get("mode", "direct") != "direct":
        errors.append(
            f"cascade needs mode direct, not {values['mode']!r}: a batch is asked of one model. Take cascade away, or set mode: direct"
        )
    most = values.get("max_ai_calls")
    if most and most < len(steps):
        errors.append(
            f"max_ai_calls is {most}, and one input may take {len(steps)} calls by the cascade: no input would ever be asked"
        )
    last, before, version = steps[-1][0], values.get("model"), values.get("model_version")
    if before and before != last and version is not None:  # it is said of the other model
        values["versions"] = {before: version, **values.get("versions", {})}
        values["model_version"] = None
    values["model"] = last
    return errors


def _sql_functions_problems(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with the options of `provider: native`, the SQL functions that are called in the place of AI functions."""
    names = (*BUILT_IN, *(function.name for function in values.get("functions", ())))
    return [
        f"options of provider native name the SQL function to call in the place of an AI function; {name!r} is none{did_you_mean(name, names)}"
        if name not in names
        else f"options.{name} of provider native must be the name of a SQL function, not {function!r}"
        for name, function in values.get("options", {}).items()
        if name not in names or not isinstance(function, str) or not _FUNCTION_NAME.fullmatch(function)
    ]


def _converted(key: str, value: Any) -> Any:
    if key == "rows_per_request" and value == "auto":
        return 0
    if key in _NUMBERS:
        return _NUMBERS[key](str(value))
    if key == "api_key":
        return value if isinstance(value, Secret) else Secret(str(value)) if str(value).strip() else None
    if key == "embedding_models":
        return tuple([value] if isinstance(value, str) else value)
    if key == "functions":
        return functions_of(value)
    if key == "prices":
        return prices_of(value)
    if key == "cascade":
        return cascade_of(value)
    if key == "canary":
        return canary_of(value)
    if key == "dedupe":
        return dedupe_of(value)
    if key == "versions":
        return {str(k): str(v) for k, v in value.items()}
    if key in _TEXTS:
        return str(value)
    if key == "keep_requests":
        return str(value).lower() == "true"
    return value
