# Everything starts here: `make` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PLAIN  := $(VENV)/installed
STAMP  := $(VENV)/installed-dev
PEERS  := .venv-peers
QUICK  := tests/test_architecture.py tests/rules tests/engine tests/store/test_conformance.py tests/flow/test_complete.py

.DEFAULT_GOAL := help
.PHONY: help demo demo-serve crawl test quick check format docs soak bench bench-profile bench-scale bench-recrawl bench-change bench-focus bench-read bench-export bench-memory bench-scheduler bench-dashboard chaos shape clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# What a user gets, and nothing else.
$(PLAIN): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# What developers need, added to it: neither undoes the other.
$(STAMP): $(PLAIN)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(PLAIN) ## Crawl a small local site, kill the crawler half way, resume, compare
	$(BIN)/inchworm demo

demo-serve: $(PLAIN) ## Try the dashboard with a site that can be changed: open the link it prints
	$(BIN)/inchworm demo-serve $(if $(PORT),--port $(PORT))

ifdef URL
crawl: $(PLAIN) ## Crawl a real site: make crawl URL=https://example.org/docs
	$(BIN)/inchworm crawl $(URL)
else
crawl:
	@echo "Say what to crawl: make crawl URL=https://example.org/docs" >&2; exit 2
endif

test: ## Install what the tests need, run the checks and all tests
	@tests/install --say $(STAMP)
	@$(MAKE) --no-print-directory check
	PATH="$(CURDIR)/$(BIN):$$PATH" tests/install
	@# Tests start inchworm hundreds of times: compiled once, not each time.
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q src
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 3 --dist loadgroup

quick: check ## Linter, types, rules, stores and one crawl, in less than a minute: for while you work
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n 3 --dist loadgroup $(QUICK)

check: $(STAMP) ## Linter, formatter and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(STAMP) ## A thousand kills, random sites, broken pages and hostile documents: what the tests do in short, at length
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_KILLS=1000 $(BIN)/python -m pytest -n 2 tests/crash
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_FUZZ_PAGES=$${INCHWORM_FUZZ_PAGES:-100000} $(BIN)/python -m pytest tests/flow/test_fuzz.py
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_TEST_SITES=$${INCHWORM_TEST_SITES:-1000} $(BIN)/python -m pytest -n 2 tests/flow/test_random_sites.py
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_HOSTILE_DOCUMENTS=$${INCHWORM_HOSTILE_DOCUMENTS:-10000} $(BIN)/python -m pytest tests/test_documents_hostile.py

docs: $(STAMP) ## Make the reference pages and the pictures anew
	$(BIN)/python docs/reference/make.py
	$(BIN)/python docs/pictures/session.py
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=. $(BIN)/python docs/pictures/dashboard.py

$(PEERS)/installed:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check scrapy 'crawlee[parsel]'
	@touch $@

bench: $(STAMP) $(PEERS)/installed ## Compare with Scrapy and Crawlee on the same site
	[ -f /usr/share/doc/postgresql-doc-15/html/index.html ] || apt-get install -y -qq postgresql-doc-15
	$(BIN)/python bench/peers.py --peers $(PEERS)/bin/python

bench-profile: $(STAMP) ## Where a page's CPU goes
	[ -f /usr/share/doc/postgresql-doc-15/html/index.html ] || apt-get install -y -qq postgresql-doc-15
	$(BIN)/python bench/profile.py

bench-scale: $(STAMP) ## What a commit costs with up to five million known URLs
	$(BIN)/python bench/scale.py

bench-recrawl: $(STAMP) ## What an unchanged site costs when it is crawled again
	[ -f /usr/share/doc/postgresql-doc-15/html/index.html ] || apt-get install -y -qq postgresql-doc-15
	$(BIN)/python bench/recrawl.py

bench-change: $(STAMP) ## Does a crawl find every change of a manual, and no other?
	$(BIN)/python bench/change.py
	$(BIN)/python bench/change.py --apart

bench-focus: $(STAMP) ## How many fetches it takes to find the pages that match a query
	[ -f /usr/share/doc/postgresql-doc-15/html/index.html ] || apt-get install -y -qq postgresql-doc-15
	$(BIN)/python bench/focus.py

bench-export: $(STAMP) ## How fast a hundred thousand pages are exported, beside reading the archive alone
	$(BIN)/python bench/export.py

bench-read: $(STAMP) ## What it costs to read a page without a crawl
	[ -f /usr/share/doc/postgresql-doc-15/html/index.html ] || apt-get install -y -qq postgresql-doc-15
	$(BIN)/python bench/read.py

bench-memory: $(STAMP) ## Is memory flat over 30,000 pages, and the event loop lively?
	$(BIN)/python bench/memory.py

bench-dashboard: $(STAMP) ## How long the pages of the dashboard take with a hundred thousand pages
	$(BIN)/python bench/dashboard.py

bench-scheduler: $(STAMP) ## What a hundred thousand jobs cost
	$(BIN)/python bench/scheduler.py

chaos: $(STAMP) ## Three services, 200 jobs, a minute of kills
	PATH="$(CURDIR)/$(BIN):$$PATH" INCHWORM_CHAOS_JOBS=200 INCHWORM_CHAOS_SECONDS=60 $(BIN)/python -m pytest tests/service/test_chaos.py

shape: $(STAMP) ## Sizes of files and functions
	$(BIN)/python bench/shape.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) $(PEERS) build dist .mypy_cache .ruff_cache .hypothesis
