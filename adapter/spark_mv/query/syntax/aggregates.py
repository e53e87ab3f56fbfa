"""Which functions aggregate, and whether one stands in an expression."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.parse import Call

AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_variant_agg",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    ]
)


def aggregates(node: exp.Expr) -> bool:
    """Whether an aggregate function stands in `node`, outside windows and subqueries."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, exp.Query):
            continue
        if isinstance(item, exp.Window):
            # arguments of a window function may aggregate: sum(sum(x)) OVER (ORDER BY count(*))
            inner = item.this
            while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                inner = inner.this
            stack += [*inner.iter_expressions(), *(item.args.get("partition_by") or [])]
            if item.args.get("order") is not None:
                stack.append(item.args["order"])
            continue
        call = item.meta.get("call")
        named = call.name if isinstance(call, Call) and not call.keyword else ""
        if isinstance(item, exp.Anonymous):
            named = item.name.lower()
        if named in AGGREGATES or isinstance(item, exp.AggFunc):
            return True
        stack += list(item.iter_expressions())
    return False
