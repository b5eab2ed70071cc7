# Every target does its own set-up in .venv; nothing else needs to be installed or called first.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/.installed
FOREIGN := .venv/foreign/.installed

.PHONY: help demo demo-local examples test test-foreign foreign browser check lint types layers coverage bench format reference constraints setup clean distclean

help: ## What there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## A poet draws a number from an MCP server over HTTP, a critic reads the poem
	@$(BIN)/python scripts/demo.py http

demo-local: $(INSTALLED) ## The same with the MCP server as a child process over stdio
	@$(BIN)/python scripts/demo.py stdio

examples: $(INSTALLED) ## The workflows of yaml_instance/ that the embedded model can do, in two minutes
	@$(BIN)/python scripts/examples.py $(ARGS)

test: $(INSTALLED) $(FOREIGN) ## All tests (make test ARGS="-k loop")
	@$(BIN)/python -m pytest -n auto $(ARGS)

test-foreign: $(INSTALLED) $(FOREIGN) ## Those with MCP servers of others, and the conformance suite
	@$(BIN)/python -m pytest -n auto tests/foreign $(ARGS)

foreign: $(INSTALLED) $(FOREIGN) ## Only their set-up

browser: ## Chromium, for the tests of reports; Debian's, where it is not there
	@scripts/browser.sh

$(FOREIGN): tests/foreign/package.json tests/foreign/requirements.txt tests/foreign/mem0.txt scripts/foreign.sh | $(INSTALLED)
	@scripts/foreign.sh

check: lint types layers test ## Lint, types, layers, then all tests

lint: $(INSTALLED) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(INSTALLED) ## basedpyright, strict on devall/
	@$(BIN)/basedpyright

layers: $(INSTALLED) ## import-linter: imports point down only
	@$(BIN)/lint-imports --no-cache

coverage: $(INSTALLED) $(FOREIGN) ## All tests with line and branch coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -p no:xdist $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(INSTALLED) .venv/bench/.installed ## Benchmarks beside other engines; writes bench/RESULTS.md
	@$(BIN)/python -m bench $(ARGS)

.venv/bench/.installed: pyproject.toml constraints.txt bench/setup.sh
	@bench/setup.sh

format: $(INSTALLED) ## Put the code into form
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

reference: $(INSTALLED) ## Write docs/reference.md from the docstrings of the format's models
	@$(BIN)/python scripts/reference.py

setup: $(INSTALLED) ## Only the set-up

constraints: ## Take the newest versions that fit pyproject.toml into constraints.txt
	@scripts/constraints.sh

clean: ## Remove caches and what was built; logs/ and .venv stay
	@rm -rf build dist .coverage .coverage.* htmlcov .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv too
	@rm -rf .venv

$(INSTALLED): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" scripts/setup.sh
