# Two commands matter, `make test` and `make demo`; each sets up what it needs.
# They need Python 3.11 or newer (PYTHON=... names one) and Java 17 or newer.

PYTHON ?= python3
DAYS ?= 30
BIN := .venv/bin
# Of thousands of small statements on two cores, concurrent collection would take a third, and Java's
# second compiler, without which less memory would be set aside for compiled code, a sixth.
JAVA_OF_TESTS := -XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m
START = STREAMTABLES_CLASS_ARCHIVE=false JAVA_TOOL_OPTIONS="$(JAVA_OF_TESTS)" $(BIN)/streamtables spark start
export STREAMTABLES_HOME := $(CURDIR)/.streamtables
# The tests start hundreds of processes: where the environment forbids bytecode beside the sources,
# each would compile Dagster, PySpark and this package again.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode
# The tests start PostgreSQL as another user, for which Python forks: gRPC's handlers of a fork can end
# the child before it begins, if the connection to Spark is busy.
export GRPC_ENABLE_FORK_SUPPORT := 0

.PHONY: venv unattended java test types test-rest demo demo-headless docs bench crash histories races soak tpch tpcds spark-corpus sqlglot-fixtures postgres-corpus object-store cluster log-store test-long clean

# PySpark is published as source: a wheel of 450 MB is made of it, which would be compressed first.
# uv installs in half of pip's time, but reads none of pip's settings (an index of one's own).
venv: .venv/.stamp

.venv/.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>&1); name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@printf '[bdist_wheel]\ncompression = stored\n' > .venv/build.cfg
	@export DIST_EXTRA_CONFIG="$(CURDIR)/.venv/build.cfg"; \
	$(BIN)/pip install --quiet uv && $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || { \
	  echo "uv could not install; pip tries" >&2; $(BIN)/pip install --quiet --no-compile --editable '.[dev]'; }
	@touch $@

# The first line of `java -version` is like: openjdk version "17.0.15" 2025-04-15
java:
	@if [ -n "$$JAVA_HOME" ]; then java="$$JAVA_HOME/bin/java"; else java=java; fi; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -1); \
	[ "$${version:-0}" -ge 17 ] || { \
	  echo "Spark needs Java 17 or newer, and $$java is $${version:+Java }$${version:-missing}; install Java 17 or 21, and put it on PATH or name its folder in JAVA_HOME" >&2; exit 1; }

# A worker keeps the tests of a module, whose fixtures it has made, until the other has none left. The
# server is stopped whether tests pass or not; the last line is pytest's summary.
PYTEST = $(BIN)/pytest --numprocesses 2 --dist worksteal --timeout 180
STOP_SPARK = trap '$(BIN)/streamtables spark stop >/dev/null' EXIT

test: java venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(STOP_SPARK); $(START) && $(PYTEST)

types: venv
	$(BIN)/pyright

# What `make test` leaves out, but for what takes hours.
test-rest: java venv
	@$(STOP_SPARK); $(START) && \
	$(PYTEST) -m "(spark or postgres or process or thorough) and not (smoke or long or hours)"

demo: java venv
	$(BIN)/python -m example_defs.demo

demo-headless: java venv
	$(BIN)/python -m example_defs.headless --days $(DAYS)

# The documentation as a site; a dead link or a page outside of its navigation is an error.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open .site/index.html, or run $(BIN)/mkdocs serve"

bench: java venv
	$(BIN)/pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks.graph
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.refresh --rows 1000000 --changes 10,1000,10000,100000
	$(BIN)/python -m benchmarks.tpch
	$(BIN)/python -m benchmarks.refresh
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.tick
	$(BIN)/python -m benchmarks.subscribe
	$(BIN)/python -m benchmarks.replication
	$(BIN)/python -m benchmarks.report

tpch: java venv
	$(BIN)/python -m qa.tpch --scale 0.01 --windows 12

tpcds: java venv
	$(BIN)/python -m qa.tpcds --scale 0.01 --windows 4

# Random histories of operations, while nobody looks.
unattended: java venv
	@$(STOP_SPARK); $(START) && \
	$(BIN)/python -m qa.unattended --minutes 60

# Spark's own SQL tests, whose JAR the first run downloads (50 MB).
spark-corpus: java venv
	@$(STOP_SPARK); $(START) && \
	$(BIN)/python -m qa.spark_corpus $(CORPUS)

# The queries by which sqlglot tests its optimizer.
sqlglot-fixtures: java venv
	@$(STOP_SPARK); $(START) && \
	$(BIN)/python -m qa.sqlglot_fixtures $(CORPUS)

# PostgreSQL's regression queries, which that JAR has, against a PostgreSQL of a wheel.
postgres-corpus: java venv
	@$(STOP_SPARK); $(START) && \
	$(BIN)/python -m qa.postgres_corpus $(CORPUS)

object-store: java venv
	$(BIN)/python -m qa.object_store $(STORE)

# A standalone cluster: a master, two workers, a Connect server.
cluster: java venv
	@trap '$(BIN)/streamtables spark stop >/dev/null' EXIT; \
	$(BIN)/python -m qa.cluster cost && $(BIN)/python -m qa.cluster kills --number 200

# The JAR of the log store for S3, by the compiler of a JDK.
log-store: java venv
	$(BIN)/python -m qa.log_store

crash: java venv
	$(BIN)/pytest -m hours tests/runtime/test_crash.py

histories: java venv
	$(BIN)/python -m qa.histories --minutes 60 --roots 2 --processes 2

races: java venv
	$(BIN)/python -m qa.races --versions 1000

soak: java venv
	$(BIN)/python -m qa.soak.lake --minutes 60

# In hours, what Java's second compiler takes comes back.
test-long: JAVA_OF_TESTS := -XX:+UseParallelGC
test-long: java venv
	@$(STOP_SPARK); $(START) && $(PYTEST) --numprocesses 3 --timeout 600 -m long

clean:
	@[ ! -x $(BIN)/streamtables ] || $(BIN)/streamtables spark stop
	rm -rf .venv .streamtables .demo .pytest_cache .ruff_cache .hypothesis .site
