"""What one AI column takes directly, several inputs to a request, in a batch, and by a cascade: requests, tokens and money, counted by an
endpoint on loopback. Run: `python -m benchmarks.ai_ways [inputs]`. Tokens are counted at four bytes each; prices are 1 and 4 per 1,000,
of the small model of a cascade a tenth. `python -m benchmarks.ai_ways 10000 reviews`: the quickstart's texts, one cascade."""

from __future__ import annotations

import random
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from examples.quickstart.reviews import demo_reviews
from integration_tests.ai.batch_endpoint import BatchEndpoint as Server
from integration_tests.ai.endpoint import Behaviour

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.batches.lines import outcome_of, replies, request_line
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.chat import CHAT
from spark_mv.ai.in_turn import ask_in_turn
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.prices import Price
from spark_mv.ai.protocol import ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.secret import Secret
from spark_mv.query.ai_calls.cascade import Step

_WORDS = [
    "took",
    "this",
    "for",
    "two",
    "weeks",
    "and",
    "it",
    "helped",
    "with",
    "the",
    "pain",
    "but",
    "gave",
    "me",
    "a",
    "headache",
    "every",
    "morning",
    "so",
    "I",
    "stopped",
    "again",
]
PRICE = Price(1.0, 4.0)
THREADS = 16
QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart" / ".data"


def texts(number: int) -> list[str]:
    """Distinct texts of 10 to 60 words."""
    draw = random.Random(7)
    return [f"{n} " + " ".join(draw.choices(_WORDS, k=draw.randint(10, 60))) for n in range(number)]


def reviews(number: int) -> list[str]:
    """The quickstart's distinct reviews; beyond them, texts of as many sentences as one of them has, drawn from all of theirs."""
    rows = [review.review for review in demo_reviews(QUICKSTART)]
    found = dict.fromkeys(rows)
    folded = {" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in found}
    print(f"{len(rows):,} reviews, {len(found):,} distinct texts, {len(folded):,} without case and white space")
    split = [text.split(". ") for text in found]
    sentences = [sentence for text in split for sentence in text]
    draw = random.Random(7)
    while len(found) < number:
        found[". ".join(draw.choices(sentences, k=len(draw.choice(split))))] = None
    return list(found)[:number]


def direct(server: Server, questions: list[Request], together: int) -> tuple[int, list[Outcome]]:
    """So many inputs in each request."""
    before = sum(server.seen.asked.values())
    settings = ProviderSettings(server.url, Secret("none"), 30.0, rows_per_request=together)
    asker = Asker(OpenAIProvider(settings), Limits(Share()), max_attempts=3)
    with ThreadPoolExecutor(THREADS) as pool:
        packs = [questions[start : start + together] for start in range(0, len(questions), together)]
        found = [outcome for pack in pool.map(asker.ask, packs) for outcome in pack]
    return sum(server.seen.asked.values()) - before, found


def batch(server: Server, questions: list[Request]) -> tuple[int, list[Outcome]]:
    """All in one batch."""
    before = sum(server.requests.values())
    remote = BatchEndpoint(ProviderSettings(server.url, Secret("none"), 30.0))
    lines = [request_line(str(number), question) for number, question in enumerate(questions)]
    made = remote.create("one", remote.upload("one", b"\n".join(lines)), CHAT)
    server.finish()
    ended = remote.look(made)
    assert ended is not None
    assert ended.output_file is not None
    answers = replies([remote.read(ended.output_file)])
    found = [outcome_of(q, answers.get(str(n), ()), "", 0.0) for n, q in enumerate(questions)]
    return sum(server.requests.values()) - before, found


def cascade(server: Server, questions: list[Request], unsure: float) -> tuple[dict[str, int], list[Outcome]]:
    """A small model first, which is unsure of a share of the inputs; requests by model."""
    before = server.seen.models.copy()
    server.behaviour = Behaviour(unsure=unsure)
    asker = Asker(OpenAIProvider(ProviderSettings(server.url, Secret("none"), 30.0)), Limits(Share()), max_attempts=3)
    steps = (Step.of("small", "small", "confidence >= 0.9"), Step.of("m", "m", None))
    prices = {"small": (PRICE.input / 10, PRICE.output / 10), "m": PRICE.direct}
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda question: ask_in_turn(asker, question, steps, prices), questions))
    return dict(server.seen.models - before), found


def cascades(server: Server, questions: list[Request], directly: list[Outcome], shares: tuple[float, ...]) -> None:
    """The second table."""
    print(
        "\n| the first model is unsure of | requests: small | large | input tokens | output tokens | money | answers as directly |\n"
        "|---|---|---|---|---|---|---|"
    )
    for unsure in shares:
        models, found = cascade(server, questions, unsure)
        used = sum(o.input_tokens for o in found), sum(o.output_tokens for o in found)
        money = sum(step.cost for o in found for step in o.steps)
        same = sum(a.value == b.value for a, b in zip(directly, found, strict=True))
        print(
            f"| {unsure:.0%} | {models.get('small', 0):,} | {models.get('m', 0):,} | {used[0]:,} | {used[1]:,} | {money:,.2f} | {same:,} of {len(found):,} |"
        )


def main(number: int, real: bool) -> None:
    labels = {"labels": ["works", "works with side effects", "does not work"]}
    questions = [
        Request("ai_classify", {"content": text}, labels, model="m") for text in (reviews if real else texts)(number)
    ]
    with Server() as server:
        server.counts_everything = True
        ways = {
            "directly": (direct(server, questions, 1), PRICE.direct),
            "rows_per_request: 10": (direct(server, questions, 10), PRICE.direct),
            "rows_per_request: 25": (direct(server, questions, 25), PRICE.direct),
            "mode: batch": (batch(server, questions), PRICE.in_batch(0.5)),
        }
        report(ways, number)
        cascades(server, questions, ways["directly"][0][1], (0.3,) if real else (0.0, 0.1, 0.3, 0.6, 1.0))


def report(ways: dict[str, tuple[tuple[int, list[Outcome]], tuple[float, float]]], number: int) -> None:
    """The first table."""
    first = [o.value for o in ways["directly"][0][1]]
    print(
        "| way | HTTP requests | input tokens | output tokens | money | answers as directly |\n|---|---|---|---|---|---|"
    )
    for name, ((requests, found), prices) in ways.items():
        used = sum(o.input_tokens for o in found), sum(o.output_tokens for o in found)
        money = (used[0] * prices[0] + used[1] * prices[1]) / 1000
        same = sum(a == o.value for a, o in zip(first, found, strict=True))
        print(f"| {name} | {requests:,} | {used[0]:,} | {used[1]:,} | {money:,.2f} | {same:,} of {number:,} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, "reviews" in sys.argv)
