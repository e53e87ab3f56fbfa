"""The cross-database macros, and functions as models."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.functions import test_udfs as udfs
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesBackslash
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod


class TestAnyValue(BaseAnyValue):
    pass


class TestArrayAppend(BaseArrayAppend):
    pass


class TestArrayConcat(BaseArrayConcat):
    pass


class TestArrayConstruct(BaseArrayConstruct):
    pass


class TestBoolOr(BaseBoolOr):
    pass


class TestCast(BaseCast):
    pass


class TestCastBoolToText(BaseCastBoolToText):
    pass


class TestConcat(BaseConcat):
    pass


class TestCurrentTimestampNaive(BaseCurrentTimestampNaive):
    pass


class TestDate(BaseDate):
    pass


class TestDateSpine(BaseDateSpine):
    pass


class TestDateTrunc(BaseDateTrunc):
    pass


class TestDateAdd(BaseDateAdd):
    pass


class TestDateDiff(BaseDateDiff):
    pass


class TestEquals(BaseEquals):
    pass


class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    pass


class TestExcept(BaseExcept):
    pass


class TestGenerateSeries(BaseGenerateSeries):
    pass


class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    pass


class TestHash(BaseHash):
    pass


class TestIntersect(BaseIntersect):
    pass


class TestLength(BaseLength):
    pass


class TestListagg(BaseListagg):
    pass


class TestMixedNullCompare(BaseMixedNullCompare):
    pass


class TestNullCompare(BaseNullCompare):
    pass


class TestPosition(BasePosition):
    pass


class TestReplace(BaseReplace):
    pass


class TestRight(BaseRight):
    pass


class TestSafeCast(BaseSafeCast):
    pass


class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    pass


class TestStringLiteral(BaseStringLiteral):
    pass


class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass


class TestTypeBigInt(BaseTypeBigInt):
    pass


class TestTypeBoolean(BaseTypeBoolean):
    pass


class TestTypeString(BaseTypeString):
    pass


class TestTypeTimestamp(BaseTypeTimestamp):
    pass


def _typed(column: str, data_type: str) -> str:
    """A seed's numbers are double or bigint unless the user says otherwise."""
    return f"seeds: [{{name: expected, config: {{column_types: {{{column}: {data_type}}}}}}}]"


class TestTypeFloat(BaseTypeFloat):
    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        return {"expected.csv": "float_col\n1.2345\n", "expected.yml": _typed("float_col", "float")}


class TestTypeInt(BaseTypeInt):
    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        return {"expected.csv": "int_col\n12345678\n", "expected.yml": _typed("int_col", "int")}


class TestTypeNumeric(BaseTypeNumeric):
    def numeric_fixture_type(self) -> str:
        return "decimal(28,6)"


class TestSplitPart(BaseSplitPart):
    """Without the suite's last row, in which all parts are NULL and the expectation is that of an empty text."""

    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        rows = "a|b|c,|,a,b,c,c\n1|2|3,|,1,2,3,3\n,|,,,,\n"
        return {"data_split_part.csv": "parts,split_on,result_1,result_2,result_3,result_4\n" + rows}


class TestLastDay(BaseLastDay):
    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        rows = "2018-01-02,month,2018-01-31\n2018-01-02,quarter,2018-03-31\n2018-01-02,year,2018-12-31\n"
        return {"data_last_day.csv": "date_day,date_part,result\n" + rows}


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"get_current_timestamp.sql": "select {{ current_timestamp() }} as current_timestamp"}

    @pytest.fixture(scope="class")
    def expected_schema(self) -> Any:
        return {"current_timestamp": "timestamp"}

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return "select current_timestamp() as current_timestamp"


class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    """With dates as ISO writes them: Spark reads no others."""

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        from dbt.tests.adapter.utils import fixture_get_intervals_between as fixture

        sql = fixture.models__test_get_intervals_between_sql
        sql = sql.replace("09/01/2023", "2023-09-01").replace("09/12/2023", "2023-09-12")
        return {
            "test_get_intervals_between.yml": fixture.models__test_get_intervals_between_yml,
            "test_get_intervals_between.sql": self.interpolate_macro_namespace(sql, "get_intervals_between"),
        }


class TestFunction(udfs.UDFsBasic):
    pass


class TestDeterministicFunction(udfs.DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "\n    DETERMINISTIC" in sql or "DETERMINISTIC" in sql.split("RETURN")[1]


class TestNonDeterministicFunction(udfs.NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "NOT DETERMINISTIC" in sql


class TestStableFunction(udfs.StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "STABLE" not in sql  # a warning says that Spark does not know it


class TestFunctionWithDefault(udfs.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonFunctionRuntimeVersionRequired(udfs.PythonUDFRuntimeVersionRequired):
    pass


class TestPythonFunctionEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass


class TestPythonFunctionNotSupported(udfs.PythonUDFNotSupported):
    pass


class TestFunctionOfUnsupportedType(udfs.ErrorForUnsupportedType):
    pass
