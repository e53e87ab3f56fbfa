"""How a column of a grouped result is adjusted, and when its stored value does not tell the new one: texts only."""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.query.delta.distributive import GroupPart

ANSI = "typeof(coalesce(1, 'a')) <> 'string'"
"""Whether the session raises an overflow. Without ANSI a decimal sum that overflows is NULL, as a sum of no values is."""


@dataclass(frozen=True)
class AdjustedValue:
    """One column that is no key. `value` is its name among the rows of Q over changed rows, `summed` the aggregates of
    these per group, `carried` the names of the aggregates, `old` and `new` the names of the table's and the adjusted
    value. `adjusted`, `unsure` and `alive` are expressions over them: the new value, whether it is not known, and
    whether it proves that the group has rows ("" where it never does). `follows`: the sources decide the value."""

    name: str
    value: str
    old: str
    new: str
    summed: tuple[str, ...]
    carried: tuple[str, ...]
    adjusted: str
    unsure: str = "false"
    alive: str = ""
    gone: str = ""
    follows: bool = True


@dataclass(frozen=True)
class Values:
    """The columns of a grouped result: its keys and the others. `always`: there is no GROUP BY, so that the one row is
    there even when no row is left."""

    keys: tuple[str, ...]
    others: tuple[AdjustedValue, ...]
    always: bool = False
    counted: bool = False  # a count tells whether a group has rows
    extremes: bool = False  # there is a minimum or maximum, which may go

    @property
    def differs(self) -> str:
        """Whether a group that the table has gets another value."""
        return " OR ".join(f"NOT {v.old} <=> {v.new}" for v in self.others if v.follows) or "false"

    @property
    def state(self) -> str:
        """`-`: the group has no row any more. `?`: to be recomputed. `+`: the new values are right."""
        unsure = " OR ".join(f"({v.unsure})" for v in self.others if v.unsure != "false") or "false"
        if self.always:
            return f"CASE WHEN {unsure} THEN '?' ELSE '+' END"
        gone = " OR ".join(v.gone for v in self.others if v.gone) or "false"
        alive = " OR ".join(f"coalesce({v.alive}, false)" for v in self.others if v.alive) or "false"
        return (
            f"CASE WHEN {gone} THEN '-' WHEN {unsure} THEN '?' WHEN `__mv_went` AND NOT ({alive}) THEN '?' ELSE '+' END"
        )


def value_of(number: int, name: str, type_: str, part: GroupPart | None, one_step: bool) -> AdjustedValue:
    """`part` is None for a kept column. `one_step`: no row that came went again, nor the other way round."""
    v, old, new = f"`__mv_v{number}`", f"`__mv_o{number}`", f"`__mv_n{number}`"
    came, went, net = f"`__mv_c{number}`", f"`__mv_w{number}`", f"`__mv_d{number}`"
    summed: tuple[str, ...]
    if part is None:
        summed = (f"any_value({v}, true) FILTER (WHERE `__mv_came`) AS {came}",)
        kept = f"CASE WHEN `__mv_pre` THEN {old} ELSE {came} END"
        return AdjustedValue(name, v, old, new, summed, (came,), kept, follows=False)
    if part is GroupPart.PLAIN:
        summed = (
            f"min({v}) AS {came}", f"max({v}) AS {went}", f"count({v}) = 0 OR count({v}) = count(*) AS {net}",
        )  # fmt: skip
        unsure = f"NOT {net} OR NOT {came} <=> {went} OR (`__mv_pre` AND NOT {old} <=> {came})"
        return AdjustedValue(name, v, old, new, summed, (came, went, net), came, unsure)
    if part in (GroupPart.MIN, GroupPart.MAX):
        best, beyond = ("least", ">") if part is GroupPart.MIN else ("greatest", "<")
        aggregate = part.value
        summed = (
            f"{aggregate}({v}) FILTER (WHERE `__mv_came`) AS {came}",
            f"{aggregate}({v}) FILTER (WHERE NOT `__mv_came`) AS {went}",
        )
        unsure = f"{went} IS NOT NULL AND NOT coalesce({went} {beyond} {new}, false)"
        if one_step:  # what came is there now
            unsure += f" AND NOT coalesce({came} = {new}, false)"
        return AdjustedValue(
            name, v, old, new, summed, (came, went), f"{best}({old}, {came})", unsure, f"{new} IS NOT NULL"
        )
    change = f"sum(CASE WHEN `__mv_came` THEN {v} ELSE -{v} END)"
    if part in (GroupPart.ROWS, GroupPart.COUNT):
        adjusted = f"coalesce({old}, 0) + {net}"
        gone = f"{new} = 0" if part is GroupPart.ROWS else ""
        return AdjustedValue(
            name, v, old, new, (f"{change} AS {net}",), (net,), adjusted, f"{new} < 0", f"{new} > 0", gone
        )
    zero = f"CAST(0 AS {type_})"
    summed = (
        f"CAST({change} AS {type_}) AS {net}",
        f"count({v}) > 0 AS {came}",
        f"count({v}) FILTER (WHERE NOT `__mv_came`) > 0 AS {went}",
    )
    adjusted = (
        f"CASE WHEN {old} IS NULL AND NOT {came} THEN NULL "
        f"ELSE CAST(coalesce({old}, {zero}) + coalesce({net}, {zero}) AS {type_}) END"
    )
    # zero may be the sum of no values any more; NULL of values is an overflow, before or now
    unsure = f"({went} AND coalesce({new} = 0, true)) OR ({came} AND {new} IS NULL) OR ({went} AND {old} IS NULL)"
    if type_.lower().replace(" ", "").startswith("decimal(38,"):
        unsure += f" OR NOT ({ANSI})"
    return AdjustedValue(name, v, old, new, summed, (net, came, went), adjusted, unsure, f"{new} <> 0")
