# Leasehold. `make demo` shows it, `make test` proves it.
.PHONY: demo test bench soak audit lint need-python need-promtool

CARGO ?= cargo
ONLY ?=

# Builds, then runs a small cluster for a while on embedded defaults. DATA keeps the folder.
demo:
	$(CARGO) run --quiet --bin leasehold -- demo $(if $(DATA),--data $(DATA)) --exit-after $(or $(FOR),30s)

# Formatting, lints, every test, and the second verifier in Python against files our own program wrote.
test: need-python need-promtool
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) test --workspace --quiet
	python3 -m unittest discover -s tests/second_verifier

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

# Release build with the peers beside us; writes target/bench.json. `make bench ONLY=engine` runs a part.
bench:
	$(CARGO) build --release --package leasehold-bench --features peers
	target/release/leasehold-bench "$(ONLY)" target/bench.json

# Hours: more seeds, more fuzzing, more kills. SEEDS, FROM, CASES and KILLS say how much.
soak:
	LEASEHOLD_SIM_SEEDS=$(or $(SEEDS),1000000) LEASEHOLD_SIM_FROM=$(or $(FROM),1000000) \
	  $(CARGO) test --release --package leasehold-sim --test seeds -- --nocapture
	LEASEHOLD_FUZZ_CASES=$(or $(CASES),200000) $(CARGO) test --release --package leasehold-model --test format
	LEASEHOLD_KILL_ROUNDS=$(or $(KILLS),1000) $(CARGO) test --release --package leasehold --test kill

# Licences and sources of dependencies; known advisories where their database can be reached.
audit:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses sources bans
	$(CARGO) deny check advisories || echo "the advisory database could not be checked"
