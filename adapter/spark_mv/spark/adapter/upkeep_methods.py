"""The adapter methods of operations on the tables that models have: forget, erase, maintain, adopt, eject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import AdapterMeta
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from spark_mv.maintenance.errors import ConfigError, RefusedError, RunFailed
from spark_mv.spark.adapter.named_words import model_named


class UpkeepMixin(metaclass=AdapterMeta):
    """Methods beside those of a run (MvMixin), which knows the profile."""

    def _mv_profile(self) -> Mapping[str, Any]:
        raise NotImplementedError

    @available
    def mv_model_named(
        self, nodes: Sequence[Mapping[str, Any]], name: Any, any_materialization: bool = False
    ) -> Mapping[str, Any]:
        """The model of that name among these nodes of the graph, or an error that says which was meant."""
        from spark_mv.spark.run.operation_arguments import model_name

        try:
            return model_named(nodes, model_name(name), any_materialization)
        except RefusedError as error:
            raise CompilationError(str(error)) from error
        except ValueError as error:
            raise CompilationError(str(RefusedError("NO_SUCH_MODEL", str(error)))) from error

    @available
    def mv_forget(
        self,
        relation: str,
        model: str,
        columns: Any,
        where: str | None = None,
        withdraw: bool = False,
        functions: Mapping[str, Any] | None = None,
    ) -> str:
        """Ask the next run to draw `columns` anew, or withdraw what was asked; returns what to tell the user."""
        from spark_mv.spark.run import forgetting
        from spark_mv.spark.run.operation_arguments import flag

        try:
            if flag("withdraw", withdraw):
                if columns or where:
                    raise RefusedError(
                        "WITHDRAW", "withdraw: true takes back every request that waits, without columns and where"
                    )
                return forgetting.withdraw(self, relation, model)
            declared = {**self._mv_profile()["functions"], **(functions or {})}
            return forgetting.ask_to_forget(self, relation, model, columns, where, declared)
        except (RefusedError, ValueError) as error:
            raise CompilationError(str(error)) from error

    @available
    def mv_erase(
        self,
        invocation: Mapping[str, Any],
        others: Sequence[Mapping[str, Any]],
        keys: Sequence[Any],
        where: str | None,
        dry_run: Any,
        record_statement: str,
        functions: Mapping[str, Any] | None = None,
    ) -> str:
        """Erase what a model's tables hold of rows that its sources have lost; returns what went, and where traces remain."""
        from spark_mv.spark.run import erasing
        from spark_mv.spark.run.ai_upkeep import Models
        from spark_mv.spark.run.erased_rows import Request
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.operation_arguments import condition_text, flag

        declared = {**self._mv_profile()["functions"], **(functions or {})}
        models = Models(self, [Invocation.from_macro(values) for values in others], self._mv_profile())
        one = Invocation.from_macro(invocation)

        def erase() -> str:
            asked = Request(tuple(keys or ()), condition_text(where), declared)
            return erasing.erase(models, one, asked, flag("dry_run", dry_run), record_statement)

        return self._told(erase)

    @available
    def mv_maintain(self, invocations: Sequence[Mapping[str, Any]], vacuum: Any, dry_run: Any) -> str:
        """Upkeep of the tables of these models; returns what to tell the user."""
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.maintaining import maintain
        from spark_mv.spark.run.operation_arguments import flag

        asked = [Invocation.from_macro(values) for values in invocations]
        ai = self._mv_profile()["ai"]
        return self._told(lambda: maintain(self, asked, ai, flag("vacuum", vacuum), flag("dry_run", dry_run)))

    @available
    def mv_as_mv(self, node: Mapping[str, Any], unique_key: Any = None, freeze: Any = None) -> dict[str, Any]:
        """The model as a nondeterministic_mv, with what its config does not say."""
        from spark_mv.spark.adapter.adopt import as_mv

        return as_mv(node, unique_key, freeze)

    @available
    def mv_adopt(self, invocation: Mapping[str, Any], apply: Any, record_statement: str) -> str:
        """Adopt a model's table, or say what that would mean; returns what to tell the user."""
        from spark_mv.spark.adapter.adopt import adopt
        from spark_mv.spark.run.operation_arguments import flag

        return self._told(lambda: adopt(self, invocation, self._mv_profile(), flag("apply", apply), record_statement))

    @available
    def mv_eject(self, invocation: Mapping[str, Any], apply: Any) -> str:
        """Make a model's table a plain one, or say what that would mean; returns what to tell the user."""
        from spark_mv.spark.adapter.adopt import eject
        from spark_mv.spark.run.operation_arguments import flag

        return self._told(lambda: eject(self, invocation, self._mv_profile(), flag("apply", apply)))

    def _told(self, tell: Callable[[], str]) -> str:
        try:
            return tell()
        except (ConfigError, RefusedError, RunFailed, ValueError) as error:
            raise DbtRuntimeError(str(error)) from error
