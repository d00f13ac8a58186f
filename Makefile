# Leasehold. `make demo` shows it, `make test` proves it.
.PHONY: demo test bench soak audit need-python need-promtool need-schemathesis need-postgres need-peers

CARGO ?= cargo
ONLY ?=
TARGET = $(or $(CARGO_TARGET_DIR),target)
VENV = $(TARGET)/venv
# A test that hangs should say so long before whoever waits for it gives up.
LIMIT = timeout --verbose 40m

# Builds, then runs a small cluster with a week behind it, until it is stopped. FOR ends it by itself (FOR=30s), DATA keeps
# its folder.
demo:
	@echo "Building leasehold; the first time this takes a few minutes. The demo starts by itself after that."
	$(CARGO) run --bin leasehold -- demo $(if $(DATA),--data $(DATA)) $(if $(FOR),--exit-after $(FOR))

# Formatting, lints, every test, the second verifier in Python against files our own program wrote, and whatever
# schemathesis can think of against the HTTP API of a real daemon.
test: need-python need-promtool need-schemathesis
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(LIMIT) $(CARGO) test --workspace --quiet
	python3 -m unittest discover -s tests/second_verifier
	$(CARGO) build --workspace --quiet
	python3 tests/api_fuzz/run.py --schemathesis $(VENV)/bin/schemathesis --leasehold $(TARGET)/debug/leasehold --seconds $(or $(FUZZ),60)

# What the tests need beyond Rust: Python with `cryptography` for the second verifier.
need-python:
	@python3 -c 'import cryptography' 2>/dev/null || \
	  { echo "installing python3-cryptography"; apt-get update -qq && apt-get install -y -qq python3 python3-cryptography; }
	@python3 -c 'import cryptography' || { echo "python3 has no module cryptography; install it and try again" >&2; exit 1; }

# And promtool, which tries the alert rules and reads the metrics page.
need-promtool:
	@command -v promtool >/dev/null || \
	  { echo "installing prometheus for promtool"; apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus; }
	@command -v promtool >/dev/null || { echo "there is no promtool; install it and try again" >&2; exit 1; }

# And schemathesis, in an environment of its own.
need-schemathesis:
	@test -x $(VENV)/bin/schemathesis || { echo "installing schemathesis"; \
	  python3 -m venv $(VENV) 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(VENV); }; \
	  $(VENV)/bin/pip install --quiet --disable-pip-version-check -r tests/api_fuzz/requirements.txt; }

# Release build with the peers beside us; writes target/bench.json. `make bench ONLY=engine` runs a part.
bench: need-postgres need-peers
	$(CARGO) build --release --package leasehold-bench --features peers
	$(TARGET)/release/leasehold-bench "$(ONLY)" $(TARGET)/bench.json

# The peer of the HTTP figures.
need-postgres:
	@ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 || \
	  { echo "installing PostgreSQL"; apt-get update -qq && apt-get install -y -qq postgresql postgresql-contrib; }

# The peers of the figures about usage, in an environment of their own.
need-peers:
	@test -x $(TARGET)/venv-peers/bin/python || { echo "installing DuckDB, polars and ClickHouse"; \
	  python3 -m venv $(TARGET)/venv-peers 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(TARGET)/venv-peers; }; \
	  $(TARGET)/venv-peers/bin/pip install --quiet --disable-pip-version-check -r crates/bench/peers/requirements.txt; }

# Hours: more seeds, more fuzzing, more kills. SEEDS, FROM, CASES and KILLS say how much.
soak:
	LEASEHOLD_SIM_SEEDS=$(or $(SEEDS),1000000) LEASEHOLD_SIM_FROM=$(or $(FROM),1000000) \
	  $(CARGO) test --release --package leasehold-sim --test seeds -- --nocapture
	LEASEHOLD_ACCOUNTS_SEEDS=$(or $(SEEDS),100000) LEASEHOLD_ACCOUNTS_FROM=$(or $(FROM),1000000) LEASEHOLD_ACCOUNTS_LONG=1000 \
	  $(CARGO) test --release --package leasehold-sim --test accounts -- --nocapture
	LEASEHOLD_FUZZ_CASES=$(or $(CASES),200000) $(CARGO) test --release --package leasehold-model --test format
	LEASEHOLD_KILL_ROUNDS=$(or $(KILLS),1000) $(CARGO) test --release --package leasehold --test kill

# Licences and sources of dependencies; known advisories where their database can be reached.
audit:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses sources bans
	$(CARGO) deny check advisories || echo "the advisory database could not be checked"
