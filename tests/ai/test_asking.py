"""One final outcome per request: retries, halving, budgets, cooldown; a provider in memory, no clock asserted."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from spark_mv.ai.asking import GIVE_UP_AFTER, LONGEST_WAIT, WRONG_AFTER, Asker
from spark_mv.ai.in_parts import ask_in_parts, parts_of
from spark_mv.ai.limits import Limits, Share, interval, part
from spark_mv.ai.protocol import Answer, ProviderError, ProviderSettings, Request
from spark_mv.ai.secret import Secret


def ask(text: str) -> Request:
    return Request("ai_gen", {"prompt": text})


class Fake:
    """Fails as the text says: `kind:times` fails so often, `kind` always; counts what it was asked."""

    wait = 0.0  # Retry-After

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.complaints: list[str | None] = []

    def batch_size(self, request: Request) -> int:
        return 4

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        for request in requests:
            text = str(request.row["prompt"])
            self.asked[text] += 1
            self.complaints.append(request.complaint)
            kind, _, times = text.partition(":")
            if kind == "bug":
                raise KeyError("oops")
            if kind != "fine" and (not times or self.asked[text] <= int(times)):
                raise ProviderError(
                    kind, text, retry_after=self.wait, spent=(3, 1) if kind == "invalid_answer" else (0, 0)
                )
        return [Answer(f"<{r.row['prompt']}>", None, 10, 2) for r in requests]


def asker(share: Share | None = None, attempts: int = 3, **more: float) -> tuple[Asker, Fake]:
    fake = Fake()
    return Asker(fake, Limits(share or Share(concurrency=2)), max_attempts=attempts, **more), fake


def test_transient_failures_are_retried_until_the_last_attempt() -> None:
    one, fake = asker()
    assert [o.value for o in one.ask([ask("server:2")])] == ["<server:2>"]
    (lost,) = one.ask([ask("timeout")])
    assert (lost.error_class, lost.attempts, fake.asked["timeout"]) == ("timeout", 3, 3)


def test_a_long_group_is_asked_in_parts_and_then_together() -> None:
    class Counts(Fake):
        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            (one,) = requests
            self.asked[str(one.row["content"])] += 1
            if "refused" in str(one.row["content"]):
                raise ProviderError("refused", "too much")
            return [Answer(f"{len(json.loads(str(one.row['content'])))} of them", None, 10, 2)]

    def group(*texts: str) -> Request:
        return Request("ai_agg", {"content": json.dumps(texts)}, {"instruction": "what?"}, model="m")

    fake = Counts()
    one = Asker(fake, Limits(Share(concurrency=2)), max_attempts=1)
    texts = [f"text {n:03}" for n in range(100)]
    found = ask_in_parts(one, group(*texts), "v", 300, (1.0, 2.0))
    sent = [json.loads(text) for text in fake.asked]
    assert [value for part in sent[:-1] for value in part] == texts
    assert all(len(text) <= 300 for text in fake.asked)
    assert sent[-1] == [f"{len(part)} of them" for part in sent[:-1]]
    assert (found.value, len(found.steps), found.input_tokens) == (
        f"{len(sent) - 1} of them",
        len(sent),
        10 * len(sent),
    )
    assert sum(step.cost for step in found.steps) == pytest.approx(len(sent) * (10 + 4) / 1000)
    short = ask_in_parts(one, group("a"), "v", 300, (1.0, 2.0))
    assert (short.value, short.steps) == ("1 of them", ())
    lost = ask_in_parts(one, group(*texts[:40], "refused", *texts[40:]), "v", 300, (1.0, 2.0))
    assert (lost.error_class, lost.value, lost.attempts > 1) == ("refused", None, True)


def test_where_a_long_text_is_cut() -> None:
    def cut(text: str, most: int) -> list[str]:
        return [str(one.row["content"]) for one in parts_of(Request("ai_summarize", {"content": text}), most)]

    words = "One sentence here. Another one there.\n\nA new paragraph; ü and ß count twice. " * 20
    parts = cut(words, 200)
    assert "".join(parts) == words and all(len(part.encode()) <= 200 for part in parts)
    assert all(part.endswith(("\n\n", ". ", "  ")) for part in parts[:-1])
    assert cut("x" * 1000, 300) == ["x" * 300] * 3 + ["x" * 100]
    assert [len(part) for part in cut("ü" * 250, 101)] == [50] * 5
    assert cut("short", 200) == ["short"]
    assert (
        len(parts_of(Request("ai_classify", {"content": words}), 200)) == 1
    )  # what is said of a part is not said of the whole


@pytest.mark.parametrize("error", [KeyError, partial(ProviderError, "refused")])
def test_an_error_shows_no_secret_of_the_provider(error: Callable[[str], Exception]) -> None:
    class Fails(Fake):
        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            raise error(f"sent {requests[0].row['prompt']}")

    settings = ProviderSettings(api_key=Secret("sk-123"), options={"client_secret": "hunter2", "region": "north"})
    one = Asker(Fails(), Limits(Share(concurrency=2)), max_attempts=1, clean=settings.cleaned)
    (out,) = one.ask([ask("sk-123 hunter2 north")])
    assert out.error is not None and "sent *** *** north" in out.error


@pytest.mark.parametrize("kind", ["rate_limit", "server"])
def test_an_endpoint_that_asks_for_a_day_gets_two_minutes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    now = [1_000_000.0]

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "time", lambda: now[0])
    one, fake = asker(attempts=2)
    monkeypatch.setattr(fake, "wait", 86_400.0)
    assert one.ask([ask(f"{kind}:1")])[0].value == f"<{kind}:1>"
    assert LONGEST_WAIT - 1 <= sum(waited) <= LONGEST_WAIT + 1


def test_a_refusal_is_final() -> None:
    one, fake = asker()
    (lost,) = one.ask([ask("refused")])
    assert (lost.error_class, lost.attempts, fake.asked["refused"]) == ("refused", 1, 1)


def test_one_bad_input_fails_alone() -> None:
    one, _ = asker()
    texts = ["fine:1", "refused", "fine:2", "bug"]
    out = one.ask([ask(t) for t in texts])
    assert [o.error_class for o in out] == [None, "refused", None, "provider_bug"]


def test_a_bad_reply_is_asked_again_once_with_the_complaint_and_both_are_paid() -> None:
    one, fake = asker(attempts=5)
    (good,) = one.ask([ask("invalid_answer:1")])
    assert (good.value, good.attempts, good.input_tokens, good.output_tokens) == ("<invalid_answer:1>", 2, 13, 3)
    assert fake.complaints == [None, "invalid_answer:1"]
    (bad,) = one.ask([ask("invalid_answer")])
    assert (bad.error_class, bad.attempts, bad.input_tokens) == ("invalid_answer", 2, 6)


def test_a_wrong_key_ends_the_questions() -> None:
    one, fake = asker()
    assert [one.ask([ask(f"auth:{n}")])[0].attempts for n in range(9, 9 + WRONG_AFTER)] == [1] * WRONG_AFTER
    (left,) = one.ask([ask("fine")])
    assert (left.error_class, left.attempts, fake.asked["fine"]) == ("auth", 0, 0)


def test_an_input_that_alone_is_forbidden_keeps_back_no_other() -> None:
    one, fake = asker()
    for number in range(3 * WRONG_AFTER):
        assert one.ask([ask(f"auth:{9 + number}")])[0].error_class == "auth"
        assert one.ask([ask(f"fine:{number}")])[0].error_class is None
    assert not fake.asked["left"]


def test_an_endpoint_that_is_down_is_left_alone() -> None:
    one, fake = asker(attempts=1)
    for number in range(GIVE_UP_AFTER):
        assert one.ask([ask(f"connection:{9 + number}")])[0].attempts == 1
    assert one.ask([ask("fine")])[0].attempts == 0
    assert fake.asked["fine"] == 0


def test_the_budget_is_never_passed() -> None:
    one, fake = asker(Share(concurrency=1, tokens=40))
    out = [one.ask([ask(f"fine:{n}")])[0] for n in range(6)]
    spent = sum(o.input_tokens + o.output_tokens for o in out)
    assert spent <= 40
    assert [o.error_class for o in out] == [None, None, "budget", "budget", "budget", "budget"] or spent > 24
    assert sum(fake.asked.values()) == sum(o.value is not None for o in out)


@pytest.mark.parametrize("share", [Share(repeats=3), Share(calls=3)])
def test_asking_again_takes_of_the_budget_of_calls(share: Share) -> None:
    one, fake = asker(share)
    out = [one.ask([ask(f"{kind}:9")])[0] for kind in ("server", "timeout", "server", "invalid_answer")]
    assert [(o.error_class, o.attempts) for o in out] == [
        ("server", 3),
        ("timeout", 2),
        ("server", 1),
        ("invalid_answer", 1),
    ]
    assert sum(fake.asked.values()) == sum(o.attempts for o in out) == 4 + 3


@pytest.mark.parametrize(
    ("repeats", "bad"),
    [(0, ["budget", "budget"]), (1, ["refused"]), (9, ["refused"])],
    ids=["none", "just enough", "many"],
)
def test_a_batch_is_halved_as_far_as_the_budget_of_calls_goes(repeats: int, bad: list[str]) -> None:
    sent: list[int] = []

    class Counts(Fake):
        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            sent.append(len(requests))
            return super().answer(requests)

    one = Asker(Counts(), Limits(Share(repeats=repeats)), max_attempts=3)
    out = one.ask([ask(text) for text in ("fine:1", "refused", "fine:2", "fine:3")])
    assert [o.error_class for o in out if o.error_class] == bad
    assert sum(sent) == sum(o.attempts for o in out)
    assert len(sent) <= 4 + repeats


def test_a_deadline_in_the_past_asks_nothing() -> None:
    one, fake = asker(deadline=1.0)
    assert one.ask([ask("fine")])[0].error_class == "deadline"
    assert not fake.asked


def test_what_a_chunk_has_no_time_for_is_left_to_the_next_with_its_time() -> None:
    one, fake = asker(begin_by=time.time() - 1)
    (left,) = one.ask([ask("fine")])
    assert (left.error_class, left.attempts, fake.asked) == ("chunk", 0, Counter())
    assert abs(float(left.error or "") - time.time()) < 60
    (answered,) = one.ask([ask("fine")], begun=True)  # a further model of a cascade, a further part of a text
    assert answered.value == "<fine>"


def test_a_retry_is_no_beginning() -> None:
    one, _ = asker(begin_by=time.time() + 0.2)
    (answered,) = one.ask([ask("server:1")])  # waits for longer than the chunk has
    assert (answered.value, answered.attempts) == ("<server:1>", 2)


def test_the_end_of_the_run_comes_before_that_of_the_chunk() -> None:
    one, _ = asker(deadline=time.time() - 2, begin_by=time.time() - 1)
    assert [o.error_class for o in one.ask([ask("fine")])] == ["deadline"]


def test_the_pace_goes_on_behind_a_chunk() -> None:
    """One request a minute: the second is left, and says when it may be sent."""
    one, _ = asker(Share(requests_per_minute=1), begin_by=time.time() + 1)
    first, second = one.ask([ask("fine")]), one.ask([ask("fine")])
    assert first[0].value == "<fine>" and second[0].error_class == "chunk"
    assert 50 < float(second[0].error or "") - time.time() <= 61


def test_no_more_at_once_than_the_share_allows() -> None:
    limits, most, now = Limits(Share(concurrency=3)), 0, 0
    lock, gate = threading.Lock(), threading.Event()

    def work() -> None:
        nonlocal most, now
        limits.acquire(1, None)
        with lock:
            now += 1
            most = max(most, now)
            if now == 3:
                gate.set()
        gate.wait(5)
        with lock:
            now -= 1
        limits.release(1, (0, 0))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert most == 3


def test_shares_add_up_and_gaps_keep_the_minute() -> None:
    for total, of in ((90, 4), (7, 3), (1, 1), (600, 16)):
        shares = [part(total, n, of) or 0 for n in range(of)]
        assert sum(shares) == total
        for share in shares:
            if share:
                assert int(60.0 / interval(share)) + 1 <= share  # requests in a closed window of 60 s
