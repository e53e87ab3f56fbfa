"""The marts of an ordinary dbt project over staging views, on real tables: after each day, the table of each is what its query
gives. Their queries are those of tests/maintenance/marts.yml, which says what planning makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from direct import Direct, Model, Pool

SPEC = yaml.safe_load((Path(__file__).parents[2] / "tests" / "maintenance" / "marts.yml").read_text(encoding="utf-8"))
SCHEMA = "marts"
FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
ORDERS = 300
ALONE = ("locations", "products", "supplies")
"""Marts of one small table each: rows follow rows, as in many other tests."""
MARTS = {name: mart for name, mart in SPEC["marts"].items() if name not in ALONE}


def orders(low: int, high: int) -> str:
    """About one a day until the end of 2025, the later ones in the future of the first run."""
    return (
        "select concat('o', id) as id, concat('c', pmod(hash(id), 20)) as customer, "
        "timestamp'2025-03-01 09:30:00' + make_dt_interval(cast(id as int)) as ordered_at, concat('s', id % 3) as store_id, "
        "cast(id * 37 % 900 as int) as subtotal, cast(id % 60 as int) as tax_paid, cast(id * 41 % 999 as int) as order_total "
        f"from range({low}, {high})"
    )


def items(low: int, high: int) -> str:
    return (
        "select concat('i', id, '-', n) as id, concat('o', id) as order_id, concat('p', pmod(hash(id, n), 5)) as sku "
        f"from range({low}, {high}) lateral view explode(sequence(1, 1 + cast(id % 2 as int))) as n"
    )


MART_ORDERS = (
    "select order_id, customer_id, location_id, ordered_at, subtotal, tax_paid, order_total, cast(1.5 as decimal(26, 2)) "
    "as order_cost, 2L as count_order_items from stg_orders"
)
MART_ITEMS = (
    "select i.order_item_id, i.order_id, i.product_id, o.ordered_at, p.product_name, p.product_price, p.is_food_item, "
    "p.is_drink_item, cast(3.5 as decimal(26, 2)) as supply_cost from stg_order_items i join stg_orders o on i.order_id = "
    "o.order_id join stg_products p on i.product_id = p.product_id"
)


def load(session: Direct) -> None:
    session.query(f"drop schema if exists {SCHEMA} cascade")
    session.query(f"create schema {SCHEMA}")
    session.query(f"use {SCHEMA}")
    tables = {
        "raw_customers": "select concat('c', id) as id, concat('name ', id) as name from range(21)",
        "raw_orders": orders(0, ORDERS),
        "raw_items": items(0, ORDERS),
        "raw_products": "select concat('p', id) as sku, concat('product ', id) as name, if(id < 3, 'jaffle', 'beverage') as "
        "type, cast(400 + id * 10 as int) as price, 'x' as description from range(5)",
        "raw_supplies": "select concat('u', id) as id, concat('supply ', id) as name, cast(10 + id as int) as cost, "
        "id % 2 = 0 as perishable, concat('p', id % 4) as sku from range(12)",
    }
    for name, sql in tables.items():
        session.query(f"create table {name} {FEED} as {sql}")
    for name, view in SPEC["views"].items():
        if name != "stg_locations":
            session.query(f"create view {name} as {view['sql']}")
    session.query(f"create table mart_orders {FEED} as {MART_ORDERS}")
    session.query(f"create table mart_order_items {FEED} as {MART_ITEMS}")


def new_orders(low: int, high: int) -> list[str]:
    """Orders come with their items, and reach the marts that other marts read."""
    come = f"select concat('o', id) from range({low}, {high})"
    return [
        f"insert into raw_orders {orders(low, high)}",
        f"insert into raw_items {items(low, high)}",
        f"insert into mart_orders {MART_ORDERS} where order_id in ({come})",
        f"insert into mart_order_items {MART_ITEMS} where o.order_id in ({come})",
    ]


DAYS: dict[str, tuple[str, ...]] = {
    "2026-01-11": (*new_orders(ORDERS, ORDERS + 8), "update raw_customers set name = 'renamed' where id = 'c3'"),
    # orders change hands and days, lose items, vanish; an order comes before its customer
    "2026-01-20": (
        "update raw_orders set customer = 'c7', ordered_at = ordered_at - interval 40 days where id in ('o290', 'o12')",
        "update mart_orders set customer_id = 'c7' where order_id in ('o290', 'o12')",
        "update raw_items set sku = 'p4' where id in ('i291-1', 'i5-2')",
        "delete from raw_items where order_id in ('o280', 'o281')",
        "delete from mart_order_items where order_id = 'o280'",
        "delete from raw_orders where id in ('o281', 'o100')",
        "insert into raw_orders select 'o900', 'c99', timestamp'2026-01-15 10:00:00', 's1', 5, 1, 6",
        "insert into raw_customers values ('c50', 'nobody yet')",
    ),
    # dimensions alone: a product is renamed, a supply costs more, one has no product any more, a customer goes
    "2026-02-25": (
        "update raw_products set name = 'better', price = price + 7 where sku = 'p2'",
        "update raw_supplies set cost = cost + 3 where id in ('u1', 'u2')",
        "delete from raw_supplies where sku = 'p3'",
        "delete from raw_customers where id = 'c5'",
    ),
}


@dataclass
class Found:
    wrong: list[str] = field(default_factory=list)
    taken: dict[str, list[str]] = field(default_factory=dict)


@pytest.mark.slow
def test_every_mart_is_what_its_query_gives(spark: Any) -> None:
    pool, found = Pool(spark), Found()
    session = pool.first
    load(session)
    for other in list(pool.sessions.queue):
        other.query(f"use {SCHEMA}")
    models = {n: Model(SCHEMA, f"{n}_mv", m["sql"], {"unique_key": m["key"]}) for n, m in MARTS.items()}

    def live(session: Direct, name: str, day: str = "2026-01-10") -> None:
        at, model = f"{day} 06:00:00", models[name]
        try:
            run = model.run_incrementally(session, at)
            wanted = session.bag(model.sql.replace("current_date()", f"date'{day}'"))
        except Exception as error:  # every mart is to be seen
            found.wrong.append(f"{name}, {day}: {type(error).__name__} {str(error)[:600]}")
            return
        got = session.bag(f"select * from {model.table}")
        codes = [reason.code for reason in run.plan.reasons[:1]]
        found.taken.setdefault(name, []).append(" ".join([run.plan.strategy, *codes]))
        if got != wanted:
            lacks, more = dict(wanted - got), dict(got - wanted)
            found.wrong.append(f"{name}, {day} ({found.taken[name][-1]}): missing {lacks}, too many {more}")
        found.wrong += [f"{name}, {day}: {warning}" for warning in session.warnings]

    pool.each(live, list(models))
    for day, statements in DAYS.items():
        for statement in statements:
            session.query(statement)
        pool.each(lambda session, name, day=day: live(session, name, day), list(models))
    session.query(f"drop schema if exists {SCHEMA} cascade")
    print(found.taken)
    assert not found.wrong, "\n".join(found.wrong)
    assert not [name for name, taken in found.taken.items() if any("COMPLETE" in one for one in taken[1:])]
    assert found.taken["order_items"][1:] == ["ROW_BASED AFFECTED_ROWS"] * 2 + ["GROUP_AGGREGATE TOUCHED_GROUPS"]
    assert found.taken["recent_days"][1:3] == ["GROUP_AGGREGATE ADJUSTED_GROUPS"] * 2
