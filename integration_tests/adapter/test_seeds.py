"""Seeds: the standard group, and that every value arrives as it stands in the file."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import run_dbt


class _ViewsStay:
    """A table that is made anew leaves the views on it in place; the suite expects PostgreSQL's cascade."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result=run_result, project=project, exists=True)  # type: ignore[misc]


class TestBasicSeedTests(_ViewsStay, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(_ViewsStay, BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    """The whole line becomes one name, which is no SQL without quotes."""

    def test_seed_with_wrong_delimiter(self, project: Any) -> None:
        (result,) = run_dbt(["seed"], expect_pass=False)
        assert "PARSE_SYNTAX_ERROR" in result.message


class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        from dbt.tests.adapter.simple_seed import seeds

        project.run_sql(seeds.seeds__expected_sql)
        path = Path(project.project_root) / "seeds" / "seed_bom.csv"
        path.write_text("\ufeff" + seeds.seed__actual_csv, encoding="utf-8")


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    """Spark allows letters, digits and _ in a table's name: a file with others needs an alias."""

    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        from dbt.tests.adapter.simple_seed import seeds

        return {
            "big_seed.csv": "seed_id\n" + "".join(f"{number}\n" for number in range(20_000)),
            "seed.with.dots.csv": seeds.seed__with_dots_csv,
            "seed_unicode.csv": seeds.seed__unicode_csv,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {"seeds": {"quote_columns": False, "test": {"seed.with.dots": {"+alias": "seed_with_dots"}}}}


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        from dbt.tests.adapter.simple_seed import fixtures

        yml = fixtures.properties__schema_yml
        return {
            "schema.yml": yml.replace("character varying(256)", "string")
            .replace("text", "string")
            .replace("integer", "bigint")
            .replace("timestamp without time zone", "timestamp")
        }


_TRICKY = r'''id,name,big,money,exact,day,moment,yes,empty
1,O'Brien,9007199254740993,0.1,12345678901234567.89,2024-02-29,2024-02-29T23:59:59,true,x
2,"back\slash \n ""quoted""",-9223372036854775808,1e3,0.01,1582-10-15,1999-12-31T00:00:00.123456,false,
3,"two
lines; -- no comment",,2.5,,,,,
4,naïve ☃ 漢字 %s {{ not_jinja }},1,3,1,2024-01-01,2024-01-01T00:00:00,true,null
'''


class TestExactValues:
    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        return {
            "tricky.csv": _TRICKY,
            "typed.csv": "a,b,c\n007,1.10,2024-01-01\n,,\n",
            "refused.csv": "a\n1\nabc\n",
            "with.dots.csv": "a\n1\n",
            "dots.to.underscores.csv": "a\n1\n",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {
            "seeds": {
                "test": {
                    "typed": {"+column_types": {"a": "string", "b": "decimal(10,3)", "c": "date"}},
                    "refused": {"+column_types": {"a": "int"}},
                    "dots.to.underscores": {"+alias": "dots_to_underscores"},
                }
            }
        }

    def test_every_value_arrives(self, project: Any) -> None:
        run_dbt(["seed", "--select", "tricky", "typed"])
        rows = [tuple(row) for row in project.run_sql("select * from {schema}.tricky order by id", fetch="all")]
        assert [row[1] for row in rows] == [
            "O'Brien",
            'back\\slash \\n "quoted"',
            "two\nlines; -- no comment",
            "naïve ☃ 漢字 %s {{ not_jinja }}",
        ]
        assert [row[2] for row in rows] == [9007199254740993, -9223372036854775808, None, 1]
        assert [row[3] for row in rows] == [0.1, 1000.0, 2.5, 3.0]
        assert [row[4] for row in rows] == [Decimal("12345678901234567.89"), Decimal("0.01"), None, Decimal(1)]
        assert [row[5] for row in rows] == [dt.date(2024, 2, 29), dt.date(1582, 10, 15), None, dt.date(2024, 1, 1)]
        assert rows[1][6] == dt.datetime(1999, 12, 31, 0, 0, 0, 123456)
        assert [row[7] for row in rows] == [True, False, None, True]
        assert [row[8] for row in rows] == ["x", None, None, None]
        typed = project.run_sql("select * from {schema}.typed", fetch="all")
        assert sorted((tuple(row) for row in typed), key=str)[0] == ("007", Decimal("1.100"), dt.date(2024, 1, 1))

    def test_a_value_that_its_type_cannot_hold_is_an_error(self, project: Any) -> None:
        results = run_dbt(["seed", "--select", "refused"], expect_pass=False)
        assert "column a: 'abc' is no int" in results[0].message

    def test_a_name_with_dots(self, project: Any) -> None:
        """Spark's own catalogue knows letters, digits and underscores; an alias gives the table such a name."""
        results = run_dbt(["seed", "--select", "dots.to.underscores", "with.dots"], expect_pass=False)
        found = {result.node.name: result for result in results}
        assert found["dots.to.underscores"].status == "success"
        message = found["with.dots"].message
        assert "with.dots" in message and "INVALID_SCHEMA_OR_RELATION_NAME" in message and "an `alias`" in message, (
            message
        )


class TestManyRows:
    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        lines = (f"{i},name {i},{i / 4},2024-01-{i % 28 + 1:02d}" for i in range(100_000))
        return {"many.csv": "id,name,amount,day\n" + "\n".join(lines) + "\n"}

    def test_hundred_thousand_rows(self, project: Any) -> None:
        run_dbt(["seed"])
        run_dbt(["seed"])
        assert tuple(project.run_sql("select count(*), sum(id) from {schema}.many", fetch="one")) == (
            100_000,
            4_999_950_000,
        )
