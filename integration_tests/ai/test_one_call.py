"""Several columns from one call: what one text costs that is used in several places of a SELECT, counted by the endpoint."""

from __future__ import annotations

from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Endpoint, Seen

BOTH = "ai_extract(body, ARRAY('product', 'city'))"


def test_one_text_is_asked_once_for_all_its_columns(bench: Bench) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id % 5) AS body FROM range(8)"
    )
    with Endpoint() as endpoint:
        settings = bench.openai(endpoint.url, concurrency=2)

        def asked(sql: str) -> tuple[int, list[tuple[object, ...]]]:
            endpoint.seen = Seen()
            bench.sql(f"DELETE FROM {bench.results}")
            _, rows = bench.run(sql, settings)
            return sum(endpoint.seen.asked.values()), sorted(rows, key=str)

        # the same call written twice, in two columns and in WHERE, and once in a struct that is taken apart
        twice = f"SELECT id, {BOTH}.product AS product, {BOTH}.city AS city FROM {{s}}.reviews"
        once = f"SELECT id, found.product, found.city FROM (SELECT id, {BOTH} AS found FROM {{s}}.reviews)"
        lateral = f"SELECT id, {BOTH} AS found, found.product AS product, found.city AS city FROM {{s}}.reviews"
        number, rows = asked(twice)
        assert number == 5
        assert all(product and city for _, product, city in rows)
        assert asked(once) == (5, rows)
        number, found = asked(lateral)
        assert (number, [(row[0], *row[2:]) for row in found]) == (5, rows)
        assert asked(f"{twice} WHERE {BOTH}.city IS NOT NULL") == (5, rows)

        # other labels are another question
        apart = "SELECT id, ai_extract(body, ARRAY('product')).product AS p, ai_extract(body, ARRAY('city')).city AS c FROM {s}.reviews"
        assert asked(apart)[0] == 10
        turned = f"SELECT {BOTH}.city, ai_extract(body, ARRAY('city', 'product')).product FROM {{s}}.reviews"
        assert asked(turned)[0] == 10

        # several questions of different kinds: one ai_query whose answer is a STRUCT
        asks = "ai_query('m', concat('Kind and urgency: ', body), returnType => 'STRUCT<kind: STRING, urgency: INT>')"
        number, rows = asked(f"SELECT id, {asks}.kind AS kind, {asks}.urgency AS urgency FROM {{s}}.reviews")
        assert number == 5
        assert all(kind and urgency is not None for _, kind, urgency in rows)
