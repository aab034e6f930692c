# Everything starts here: `make` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed

.DEFAULT_GOAL := help
.PHONY: help demo crawl test check format soak shape clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## Crawl a small local site, kill the crawler half way, resume, compare
	$(BIN)/inchworm demo

crawl: $(STAMP) ## Crawl a real site: make crawl URL=https://example.org/docs
	$(BIN)/inchworm crawl $(URL)

test: check ## Install what the tests need, run the checks and all tests
	PATH="$(CURDIR)/$(BIN):$$PATH" tests/install
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP) ## Linter, formatter and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(STAMP) ## A thousand kills: the crash suite at length
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_KILLS=1000 $(BIN)/python -m pytest -n 2 tests/crash

shape: $(STAMP) ## Sizes of files and functions
	$(BIN)/python bench/shape.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
