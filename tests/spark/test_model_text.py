"""What `adopt` and `eject` print keeps the words of the model that they do not change."""

from __future__ import annotations

import pytest

from spark_mv.spark.adapter.model_text import own_words, with_config

MODEL = """-- a mart
{{
  config(
    materialized = 'table',
    alias='orders_v2', schema="mart",
    partition_by=['day', 'shop'],
    post_hook=["grant select on {{ this }} to `a, b`", log('(x) = 1')],
    freeze = ['seen'],
  )
}}
select id, rand() as r from {{ ref('orders') }}
"""


def test_other_words_stay_as_they_are_written() -> None:
    text = with_config(MODEL, {"materialized": "incremental", "unique_key": ("id",)}, ["one\ntwo"], {"freeze"})
    assert text == (
        "-- one\n-- two\n{{ config(materialized='incremental', unique_key='id', alias='orders_v2', schema=\"mart\", "
        "partition_by=['day', 'shop'], post_hook=[\"grant select on {{ this }} to `a, b`\", log('(x) = 1')]) }}\n\n"
        "-- a mart\nselect id, rand() as r from {{ ref('orders') }}"
    )


def test_a_dictionary_is_left_to_the_user() -> None:
    text = with_config("{{ config({'alias': 'a'}) }}\nselect 1 as id", {"unique_key": "id"})
    assert text.startswith("-- To be carried over by hand, as words: {'alias': 'a'}\n{{ config(unique_key='id') }}")


def test_a_python_model_stays_one() -> None:
    code = (
        "def model(dbt, session):\n    dbt.config(materialized='table', tags=['x'])  # ours\n    return dbt.ref('a')\n"
    )
    text = with_config(code, {"materialized": "nondeterministic_mv", "unique_key": ("id", "n")}, ["look"], python=True)
    assert text == (
        "# look\ndef model(dbt, session):\n    dbt.config(materialized='nondeterministic_mv', unique_key=['id', 'n'], tags=['x'])  # ours\n"
        "    return dbt.ref('a')"
    )
    bare = with_config("def model(dbt, session):\n    return dbt.ref('a')", {"unique_key": "id"}, python=True)
    assert bare.splitlines()[0] == "# in model(), to begin with: dbt.config(unique_key='id')"


@pytest.mark.parametrize("code", ["select 1", "{{ config(", "{{ config() }} select 1"])
def test_nothing_is_invented(code: str) -> None:
    assert own_words(code) == ({}, [])
