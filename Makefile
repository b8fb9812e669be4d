# `make run` and `make test` are all there is to know; each sets itself up first.
.POSIX:
.SUFFIXES:
.PHONY: help setup run test check format test-fast test-slow bench reference doctor lock wheel sbom clean

BIN = .venv/bin
ARGS =

help: ## show these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv from requirements.lock (at once when it is up to date)
	@scripts/setup

run: setup ## run the demo and its console; ARGS="--plain" runs it in this terminal, ARGS="--for 20s" ends it
	@$(BIN)/penstock demo --console $(ARGS)

test: setup ## lint, types and every test but the slow ones; ARGS="-k window" goes to pytest
	@scripts/test $(ARGS)

check: setup ## lint, format, types and layers; no tests
	@scripts/check

format: setup ## format the code and fix what lint can fix
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

test-fast: setup ## the tests that need no JVM
	@scripts/test fast $(ARGS)

test-slow: setup ## the tests that take minutes
	@scripts/test slow $(ARGS)

bench: setup ## run every benchmark and compare with the recorded figures
	@$(BIN)/penstock bench --all --check $(ARGS)

reference: setup ## write docs/reference/api from the docstrings, and the client from the OpenAPI of the server
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/client.py

doctor: setup ## look at this machine, and start Spark once
	@$(BIN)/penstock doctor --spark $(ARGS)

lock: ## bring requirements.lock up to the newest versions that fit
	@scripts/lock

wheel: setup ## build the wheel and the source archive into dist/
	@scripts/wheel

sbom: setup ## write dist/penstock.cdx.json: packages, JARs and libraries, with checksums and licences
	@$(BIN)/python scripts/sbom.py

clean: ## remove what was built; keeps .venv
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
