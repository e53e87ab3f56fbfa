"""Which FROM item a column of one SELECT belongs to, and which columns a query gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.syntax.joins import HIDING
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, OutItem, SelectNode, SetNode, Source, quoted
from spark_mv.query.syntax.star_order import Shown, StarOrder

Columns = Mapping[str, tuple[str, ...]]  # table name in lower case → its columns
Place = tuple[str, str]  # alias of a FROM item and column, lower case


def aliases(node: SelectNode) -> list[str]:
    """The FROM items' aliases; one that the user cannot have written for a query without one."""
    return [source.alias or f"__mv_from_{k}" for k, source in enumerate(node.sources)]


def output(node: Leaf | Node, tables: Columns) -> tuple[str, ...]:
    """The output columns of a table or query, stars spelled out. Raises NotIncremental where they are not known."""
    if isinstance(node, Leaf):
        if node.name.lower() not in tables:
            raise NotIncremental("UNKNOWN_COLUMNS", f"the columns of {node.name} are not known")
        return tables[node.name.lower()]
    if isinstance(node, SetNode):
        arms = [output(arm, tables) for arm in node.arms]
        if not node.by_name and len({len(arm) for arm in arms}) > 1:
            # nobody said what the table of a star has, and the query does not name all of it
            raise NotIncremental("UNKNOWN_COLUMNS", "the columns of an arm of a set operation are not known")
        return arms[0]
    if node.output is not None and node.output[0] is tables:
        return node.output[1]
    node.output = tables, tuple(name for name, _ in listed(node, tables))
    return node.output[1]


def listed(node: SelectNode, tables: Columns) -> Iterator[tuple[str, OutItem | Place]]:
    """The output columns in order, each with what gives it: the entry of the select list, or the column of FROM that a star passes on.
    Raises NotIncremental where they are not known."""
    for item in node.items:
        if item.name is not None:
            yield item.name, item
        else:
            yield from ((name, (alias.lower(), name.lower())) for alias, name in expand(node, item, tables))


def expand(node: SelectNode, item: OutItem, tables: Columns) -> list[Place]:
    """A star as (alias of the FROM item, column), in Spark's order. What a FULL join by USING shows is of no item: its alias is ''. Raises
    NotIncremental for a star of anything else: a struct, or what a generator makes."""
    star = item.node if isinstance(item.node, exp.Star) else item.node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise NotIncremental("STRUCTURE", "a star with REPLACE or RENAME")
    if any(isinstance(c, exp.Dot) or (isinstance(c, exp.Column) and len(c.parts) > 1) for c in _excepted(star)):
        raise NotIncremental("STRUCTURE", "a star EXCEPT a field")
    dropped = {column.name.lower() for column in _excepted(star)}
    wanted = _item_of_star(node, item.node) if isinstance(item.node, exp.Column) else ""
    if node.laterals and not wanted:
        raise NotIncremental("STRUCTURE", "a star beside LATERAL VIEW")
    shown: Shown[Place] = Shown()
    for alias, source in zip(aliases(node), node.sources, strict=True):
        own = Shown(tuple((alias, column) for column in source.renames or output(source.item, tables)))
        shown = _STAR.join(shown, own, source.kind, source.using)
    found = shown.qualified(lambda place: place[0].lower() == wanted) if wanted else shown.columns
    return [place for place in found if place[1].lower() not in dropped]


def _item_of_star(node: SelectNode, star: exp.Column) -> str:
    """The alias, in lower case, of the FROM item whose columns `alias.*` gives, which may be called by its schema, too."""
    *path, name = (part.name.lower() for part in star.parts[:-1])
    for alias, source in zip(aliases(node), node.sources, strict=True):
        if alias.lower() == name and (not path or _path(source)[-len(path) - 1 :] == (*path, name)):
            return name
    raise NotIncremental("STRUCTURE", f"`{star.sql('spark')}` is the star of no table or query in FROM")


def _path(source: Source) -> tuple[str, ...]:
    """The parts of a table's name, in lower case, by which its columns may be called; none of what is no table."""
    if not isinstance(source.item, Leaf) or source.renames:
        return ()
    return tuple(source.item.name.lower().replace("`", "").split("."))


def _merged(left: Place, right: Place, kind: str) -> Place:
    return {"RIGHT": right, "FULL": ("", left[1])}.get(kind, left)


_STAR = StarOrder[Place](lambda place: place[1], _merged)


def _excepted(star: exp.Expr) -> list[exp.Expr]:
    return list(star.args.get("except_") or [])


def is_whole_row(node: exp.Expr) -> bool:
    """Whether an expression sees every column there is, as `hash(*)` and `struct(t.*)` do: a column that is missing, added
    or in another place changes its value. (A count of them does too, where one may be NULL.)"""
    inside = node.walk(prune=lambda n: isinstance(n, exp.Query))
    return any(isinstance(part, exp.Star) and part is not node for part in inside)


@dataclass
class FromColumns:
    """The FROM items of one SELECT. `sources`: alias → columns, lower case. `merged`: columns of USING, whose unqualified
    name means that of one side. `compared`: a column of USING, as that of the item joined by it → the alias before it
    with whose column it is compared: that of the right side after a RIGHT JOIN. `hidden`: right sides of SEMI and ANTI joins, which the ON of
    that join alone sees. `paths`: the parts of the tables' names. `generated`: alias and columns of each generator, which WHERE and the
    clauses behind it see, and the generators behind it; no columns where they are not named."""

    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    hidden: dict[int, str] = field(default_factory=dict)  # by the id of the join
    joined: dict[int, frozenset[str]] = field(default_factory=dict)  # what the ON of a join sees, by its id
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    generated: list[tuple[exp.Expr, str, frozenset[str]]] = field(default_factory=list)
    tree: exp.Expr | None = None
    merged: dict[str, str] = field(default_factory=dict)
    compared: dict[Place, str] = field(default_factory=dict)
    _found: dict[int, tuple[frozenset[Place], bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, node: SelectNode, tables: Columns) -> FromColumns:
        scope = cls(tree=node.tree)
        joins = node.tree.args.get("joins") or []
        for number, (name, source) in enumerate(zip(aliases(node), node.sources, strict=True)):
            alias = name.lower()
            if alias in scope.sources:
                raise NotIncremental("STRUCTURE", f"two FROM items are called {alias}")
            columns = [c.lower() for c in output(source.item, tables)]
            if source.renames and [c.lower() for c in source.renames] != columns:
                raise NotIncremental("COLUMN_ALIASES", f"{source.alias} renames its columns in parentheses")
            for column in source.using:
                if source.kind == "FULL":
                    raise NotIncremental("FULL_OUTER_JOIN", "FULL OUTER JOIN USING: its columns belong to both sides")
                seen = (a for a, offered in scope.sources.items() if column.lower() in offered)
                left = next((a for a in seen if a not in scope.hidden.values()), alias)
                side = scope.merged.get(column.lower(), left)
                scope.compared[alias, column.lower()] = side
                scope.merged[column.lower()] = alias if source.kind == "RIGHT" else side
            scope.sources[alias] = frozenset(columns)
            if number:
                scope.joined[id(joins[number - 1])] = frozenset(scope.sources)
            scope.paths[alias] = _path(source)
            if source.kind in HIDING:
                scope.hidden[id(joins[number - 1])] = alias
        for made in node.generators:
            names = made.args.get("alias")
            listed = names.columns if isinstance(names, exp.TableAlias) else []
            scope.generated.append((made, made.alias.lower(), frozenset(c.name.lower() for c in listed)))
        return scope

    def resolve(self, column: exp.Column) -> Place | None:
        """(alias, column), also of a field of the column; None for what is not here: an outer column, a lateral alias, a generated
        column, the parameter of a lambda."""
        return self._resolve(column)[0]

    def whole(self, node: exp.Expr) -> Place | None:
        """The column that an expression is; None for any other one, and for a field of a column."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        place, field_of = self._resolve(node)
        return None if field_of else place

    def _resolve(self, column: exp.Column) -> tuple[Place | None, bool]:
        """Where the column is, and whether it is a field of it that is meant."""
        if _is_parameter(column):
            return None, False
        parts = [part.name.lower() for part in column.parts]
        sources, generated = self._seen_from(column)
        for k in range(len(parts) - 1, 0, -1):
            # before the column stands an alias, or a table's name, perhaps with its schema
            alias = parts[k - 1]
            named = k == 1 or self.paths.get(alias, ())[-k:] == tuple(parts[:k])
            if named and parts[k] in sources.get(alias, ()):
                return (alias, parts[k]), k < len(parts) - 1
        if any(parts[0] == alias and (not names or parts[1] in names) for alias, names in generated if len(parts) > 1):
            return None, False
        if self.merged.get(parts[0]) in sources:
            return (self.merged[parts[0]], parts[0]), len(parts) > 1
        owners = [alias for alias, columns in sources.items() if parts[0] in columns]
        return ((owners[0], parts[0]) if owners else None), len(parts) > 1

    def _seen_from(self, column: exp.Column) -> tuple[Mapping[str, frozenset[str]], list[tuple[str, frozenset[str]]]]:
        """The FROM items and the generators that an expression sees where it stands."""
        order = {id(node): k for k, (node, _, _) in enumerate(self.generated)}
        clause: exp.Expr = column
        made = inside = None
        while clause.parent is not None and clause.parent is not self.tree:
            made = order.get(id(clause), made)
            inside, clause = clause, clause.parent
        alone = isinstance(clause, exp.Join) and inside is clause.this and not isinstance(inside, exp.Lateral)
        if alone or isinstance(clause, exp.From | exp.With):
            return {}, []  # a query in FROM sees nothing of the others
        made = order.get(id(clause), made)
        if made is None:
            made = 0 if isinstance(clause, exp.Join) else len(self.generated)
        here = self.hidden.get(id(clause))
        hidden = {alias for alias in self.hidden.values() if alias != here}
        seen = self.joined.get(id(clause), self.sources.keys()) - hidden
        sources = {alias: columns for alias, columns in self.sources.items() if alias in seen}
        return sources, [(alias, names) for _, alias, names in self.generated[:made]]

    def passed_on(self, given: OutItem | Place) -> Place | None:
        """The column of FROM that an output column (see `listed`) is as it is."""
        return self.whole(given.node) if isinstance(given, OutItem) else given

    def references(self, node: exp.Expr) -> tuple[frozenset[Place], bool]:
        """The columns that an expression uses, subqueries excluded, and whether all of them were found here. Not all are
        those of a star: it takes whatever there is. Remembered by node: the tree never changes, and outlives the scope."""
        if id(node) not in self._found:
            self._found[id(node)] = self._references(node)
        return self._found[id(node)]

    def _references(self, node: exp.Expr) -> tuple[frozenset[Place], bool]:
        found: set[Place] = set()
        complete = not is_whole_row(node)
        for item in node.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star) and not _is_parameter(item):
                place = self.resolve(item)
                complete = complete and place is not None
                if place is not None:
                    found.add(place)
        return frozenset(found), complete


def _is_parameter(column: exp.Column) -> bool:
    """Whether the name is that of a parameter of a lambda around it; beside the lambda it is a column."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if column.parts[0].name.lower() in {parameter.name.lower() for parameter in around.expressions}:
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def star_texts(node: SelectNode, item: OutItem, tables: Columns) -> list[tuple[str, str, str]]:
    """A star as (alias, column, text): the column named so that it is found in the FROM of `aliases`."""
    merged = {} if isinstance(item.node, exp.Column) else FromColumns.of(node, tables).merged
    return [
        (alias, c, quoted(c) if merged.get(c.lower()) == alias.lower() else f"{quoted(alias)}.{quoted(c)}")
        for alias, c in expand(node, item, tables)
    ]


def written_texts(node: SelectNode, item: OutItem, tables: Columns) -> dict[str, str]:
    """The same as the user's own FROM has them, column (lower case) → text; without those that it cannot name."""
    given = {alias: bool(source.alias) for alias, source in zip(aliases(node), node.sources, strict=True)}
    alone = len(given) == 1
    texts = star_texts(node, item, tables)
    return {c.lower(): text if given[a] else quoted(c) for a, c, text in texts if given[a] or alone}
