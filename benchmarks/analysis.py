"""How long the analysis of a large model takes: `python benchmarks/analysis.py [lines]` prints it.

The model is a chain of CTEs with joins, windows, aggregates, clock predicates and draws, about 500 lines by default.
"""

from __future__ import annotations

import sys
from statistics import median
from time import perf_counter

from spark_mv.query.analysis.analyze import analyze

ROUNDS = 7


def model(lines: int) -> str:
    """A model of about so many lines."""
    parts = ["with base as (\n  select id, customer_id, amount, status, created_at, body\n  from orders\n)"]
    previous, step = "base", 0
    while sum(part.count("\n") + 1 for part in parts) < lines - 10:
        step += 1
        parts.append(
            f"""step_{step} as (
  select
    p.id,
    p.customer_id,
    coalesce(p.amount, 0) * (1 - {step} / 100.0) as amount,
    case
      when p.status in ('new', 'open') and p.amount > {step} then 'active'
      when p.status is null then 'unknown'
      else lower(trim(p.status))
    end as status,
    p.created_at,
    p.body,
    sum(p.amount) over (partition by p.customer_id order by p.created_at, p.id) as running_{step},
    row_number() over (partition by p.customer_id order by p.created_at desc, p.id) as n_{step},
    date_trunc('month', p.created_at) as month_{step},
    floor(rand() * 10) as draw_{step}
  from {previous} as p
  left join customers as c on c.id = p.customer_id and c.region <> 'x{step}'
  where p.created_at > current_date() - interval {step + 30} days
    and p.amount between {step} and 1000 * {step}
    and exists (select 1 from blocked as b where b.customer_id = p.customer_id)
)"""
        )
        previous = f"step_{step}"
    return ",\n".join(parts) + f"\nselect *, ai_classify(body, array('a', 'b')) as topic\nfrom {previous}\n"


SCHEMAS = {
    "orders": dict.fromkeys(("id", "customer_id"), "bigint")
    | {"amount": "double", "status": "string", "created_at": "timestamp", "body": "string"},
    "customers": {"id": "bigint", "region": "string"},
    "blocked": {"customer_id": "bigint"},
}


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    sql = model(lines)
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        analysis = analyze(sql, unique_key="id", schemas=SCHEMAS)
        times.append(perf_counter() - start)
    solved = sum(p.solved for p in analysis.clock_predicates)
    print(
        f"{sql.count(chr(10))} lines, {len(sql)} characters: median {median(times) * 1000:.0f} ms, "
        f"first {times[0] * 1000:.0f} ms; {len(analysis.columns)} columns, {len(analysis.predicates)} predicates, "
        f"{solved} of {len(analysis.clock_predicates)} on the clock solved, {len(analysis.errors)} errors"
    )


if __name__ == "__main__":
    main()
