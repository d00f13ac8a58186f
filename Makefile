# Leasehold. `make demo` shows it, `make test` proves it.
.PHONY: demo test check acceptance mutants bench bench-usage-ids soak audit need-python need-promtool need-schemathesis need-api-client need-webhooks need-valgrind need-postgres need-peers need-ray

CARGO ?= cargo
ONLY ?=
TARGET = $(or $(CARGO_TARGET_DIR),target)
VENV = $(TARGET)/venv
# Where the tests put the proofs of invoices, for the second verifier.
PROOFS = $(abspath $(TARGET))/invoice-proofs
# A test that hangs should say so long before whoever waits for it gives up.
LIMIT = timeout --verbose 40m

# Builds, then runs a small cluster with a week behind it, until it is stopped. FOR ends it by itself (FOR=30s), DATA keeps
# its folder.
demo:
	@echo "Building leasehold; the first time this takes a few minutes. The demo starts by itself after that."
	$(CARGO) run --bin leasehold -- demo $(if $(DATA),--data $(DATA)) $(if $(FOR),--exit-after $(FOR))

# Formatting, lints, every test (the instruction budgets and the licences of dependencies among them), the second verifier
# in Python against files our own program wrote, and whatever schemathesis can think of against the HTTP API of a real
# daemon: the program that the tests have built. A client that is generated from the OpenAPI document calls it as well, and
# the library of Standard Webhooks checks signatures that our own code makes.
test: need-python need-promtool need-schemathesis need-api-client need-webhooks need-valgrind
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --features leasehold-bench/ledger --quiet -- -D warnings
	rm -rf $(PROOFS)
	LEASEHOLD_PROOFS=$(PROOFS) $(LIMIT) $(CARGO) test --workspace --quiet
	LEASEHOLD_PROOFS=$(PROOFS) python3 -m unittest discover -s tests/second_verifier
	python3 tests/api_fuzz/run.py --schemathesis $(VENV)/bin/schemathesis --leasehold $(TARGET)/debug/leasehold --seconds $(or $(FUZZ),60)
	$(TARGET)/venv-client/bin/python tests/api_client/run.py --generator $(TARGET)/venv-client/bin/openapi-python-client --leasehold $(TARGET)/debug/leasehold
	$(TARGET)/debug/examples/webhook_vectors > $(TARGET)/webhook-vectors.jsonl
	$(TARGET)/venv-webhooks/bin/python tests/webhooks/check_signatures.py $(TARGET)/webhook-vectors.jsonl

# What has changed since the main branch, committed or not: the crates, and those of them that have a library.
BASE ?= $(shell git rev-parse --quiet --verify origin/main || git rev-parse --quiet --verify main || git rev-parse HEAD)
SINCE = $$(git merge-base HEAD $(BASE))
CHANGED = $(shell { git diff --name-only $(SINCE); git ls-files --others --exclude-standard; } | \
  sed -n -E 's,^((crates|adapters)/[^/]*)/.*,\1,p' | sort -u | while read crate; do test -f $$crate/Cargo.toml && echo $$crate; done)
package = $(shell sed -n 's/^name = "\(.*\)"/\1/p' $(1)/Cargo.toml | head -n 1)
PACKAGES = $(foreach crate,$(CHANGED),--package $(call package,$(crate)))
LIBRARIES = $(foreach crate,$(CHANGED),$(if $(wildcard $(crate)/src/lib.rs),--package $(call package,$(crate))))
PROGRAMS = $(foreach crate,$(CHANGED),$(if $(wildcard $(crate)/src/main.rs),--package $(call package,$(crate))))

# While working: formatting, the rules of the repository, and lints and unit tests of the crates that have changed.
check:
	$(CARGO) fmt --all -- --check
	$(CARGO) test --quiet --package leasehold-tidy
	$(if $(PACKAGES),$(CARGO) clippy --quiet --all-targets $(PACKAGES) -- -D warnings)
	$(if $(LIBRARIES),$(CARGO) test --quiet --lib $(LIBRARIES))
	$(if $(PROGRAMS),$(CARGO) test --quiet --bins $(PROGRAMS))

# Changes the lines that have changed since the main branch, one at a time, and names each change that no test notices.
mutants:
	@command -v cargo-mutants >/dev/null || $(CARGO) install --locked cargo-mutants
	@mkdir -p $(TARGET)
	git diff $(SINCE) -- '*.rs' > $(TARGET)/changed.diff
	$(CARGO) mutants --in-diff $(TARGET)/changed.diff --output $(TARGET)

# The usage adapters against a real Slurm (with munge, MariaDB and slurmdbd; as root) and a real Ray, which are installed
# if they are missing. Each runs in a folder of its own on free ports, and ends with the test. ONLY=slurm runs one.
acceptance: $(if $(filter slurm,$(ONLY)),,need-ray)
	$(CARGO) build --package leasehold --package leasehold-slurm --package leasehold-ray
	$(if $(filter-out slurm,$(ONLY)),,python3 tests/acceptance/slurm.py --programs $(TARGET)/debug)
	$(if $(filter-out ray,$(ONLY)),,python3 tests/acceptance/ray.py --programs $(TARGET)/debug --ray $(TARGET)/venv-ray/bin/ray)

need-ray:
	@test -x $(TARGET)/venv-ray/bin/ray || { echo "installing Ray"; \
	  python3 -m venv $(TARGET)/venv-ray 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(TARGET)/venv-ray; }; \
	  $(TARGET)/venv-ray/bin/pip install --quiet --disable-pip-version-check -r tests/acceptance/requirements-ray.txt; }

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

# And the generator of clients, beside it: the two need different versions of the same packages.
need-api-client:
	@test -x $(TARGET)/venv-client/bin/openapi-python-client || { echo "installing openapi-python-client"; \
	  python3 -m venv $(TARGET)/venv-client 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(TARGET)/venv-client; }; \
	  $(TARGET)/venv-client/bin/pip install --quiet --disable-pip-version-check -r tests/api_client/requirements.txt; }

# And the library of Standard Webhooks, with which receivers check signatures.
need-webhooks:
	@$(TARGET)/venv-webhooks/bin/python -c 'import standardwebhooks, cryptography' 2>/dev/null || { echo "installing standardwebhooks"; \
	  python3 -m venv $(TARGET)/venv-webhooks 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(TARGET)/venv-webhooks; }; \
	  $(TARGET)/venv-webhooks/bin/pip install --quiet --disable-pip-version-check -r tests/webhooks/requirements.txt; }

# And valgrind, which counts instructions.
need-valgrind:
	@command -v valgrind >/dev/null || \
	  { echo "installing valgrind"; apt-get update -qq && apt-get install -y -qq --no-install-recommends valgrind; }
	@command -v valgrind >/dev/null || { echo "there is no valgrind; install it and try again" >&2; exit 1; }

# Release build with the peers beside us; writes target/bench.json. `make bench ONLY=engine` runs a part.
bench: need-postgres need-peers
	$(CARGO) build --release --package leasehold-bench --features peers
	$(TARGET)/release/leasehold-bench "$(ONLY)" $(TARGET)/bench.json

# Usage records against as many remembered IDs as their goal says, without peers: rate, memory and restart. It takes about
# twenty minutes and 12 GB of disk; IDS=2000000 is what `make bench` does. Writes target/bench-usage-ids.json.
bench-usage-ids:
	$(CARGO) build --release --package leasehold-bench --features http
	LEASEHOLD_BENCH_USAGE_IDS=$(or $(IDS),50000000) $(TARGET)/release/leasehold-bench usage_records $(TARGET)/bench-usage-ids.json

# The peer of the figures about HTTP and the ledger.
need-postgres:
	@ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 || \
	  { echo "installing PostgreSQL"; apt-get update -qq && apt-get install -y -qq postgresql postgresql-contrib; }

# The peers of the figures about usage, in an environment of their own.
need-peers:
	@test -x $(TARGET)/venv-peers/bin/python || { echo "installing DuckDB, polars and ClickHouse"; \
	  python3 -m venv $(TARGET)/venv-peers 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv && python3 -m venv $(TARGET)/venv-peers; }; \
	  $(TARGET)/venv-peers/bin/pip install --quiet --disable-pip-version-check -r crates/bench/peers/requirements.txt; }

# Hours: more seeds, more fuzzing, more kills. SEEDS, FROM, CASES, KILLS and CHAOS say how much.
soak:
	LEASEHOLD_SIM_SEEDS=$(or $(SEEDS),1000000) LEASEHOLD_SIM_FROM=$(or $(FROM),1000000) \
	  $(CARGO) test --release --package leasehold-sim --test seeds -- --nocapture
	LEASEHOLD_ACCOUNTS_SEEDS=$(or $(SEEDS),100000) LEASEHOLD_ACCOUNTS_FROM=$(or $(FROM),1000000) LEASEHOLD_ACCOUNTS_LONG=1000 \
	  $(CARGO) test --release --package leasehold-books --test accounts -- --nocapture
	LEASEHOLD_FUZZ_CASES=$(or $(CASES),200000) $(CARGO) test --release --package leasehold-model --test format
	LEASEHOLD_KILL_ROUNDS=$(or $(KILLS),1000) $(CARGO) test --release --package leasehold --test kill
	LEASEHOLD_CHAOS_ROUNDS=$(or $(CHAOS),50) LEASEHOLD_CHAOS_LATENCY=1 \
	  $(CARGO) test --release --package leasehold --test chaos -- --nocapture

# Licences and sources of dependencies; known advisories where their database can be reached.
audit:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses sources bans
	$(CARGO) deny check advisories || echo "the advisory database could not be checked"
