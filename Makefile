# The commands of the project. `make run` and `make test` need nothing set up by hand but cargo, node with npm, make and a C compiler.

CARGO ?= cargo
# Recorded batches to replay in the tests, when there are any: make test REPLAY=folder
REPLAY ?=
CACHE := .cache
# Everything, with what is optional in the SDK.
ALL := --locked --workspace --features unjank/tracing,unjank/test-kit

.PHONY: run test lint fmt bench chaos clients openapi postgres check-tools doc

## run: build and start the server with the embedded engine, on 127.0.0.1:8080, with the ingest key `demo` for any app
run: check-tools
	UNJANK_INGEST_KEYS=$${UNJANK_INGEST_KEYS:-demo=*} $(CARGO) run --release --locked -p unjank-server --bin unjank -- serve

## test: every test, on real engines and real clients
test: check-tools clients postgres
	$(CARGO) build $(ALL)
	$(CARGO) test $(ALL)
	@if [ -n "$(REPLAY)" ]; then $(MAKE) replay REPLAY="$(REPLAY)"; fi

## replay: send recorded batches to a fresh server and verify that each event arrived exactly once
.PHONY: replay
replay: check-tools
	$(CARGO) build --locked --workspace
	target/debug/unjank-loadtest replay --server-bin target/debug/unjank --dir "$(REPLAY)" --verify

## lint: formatting, clippy, docs, licences where cargo-deny is installed
lint: check-tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc $(ALL) --no-deps --document-private-items -q
	@if command -v cargo-deny >/dev/null 2>&1; then cargo deny --locked check; \
	else echo "licences and advisories not checked: cargo install cargo-deny"; fi

## fmt: format everything
fmt:
	$(CARGO) fmt --all

## bench: the figures of loadtest/RESULTS.md, on this machine
bench: check-tools
	$(CARGO) build --release --locked --workspace
	target/release/unjank-loadtest bench --server-bin target/release/unjank
	$(CARGO) bench --locked -p unjank-server --bench remote_config -- --quick
	$(CARGO) bench --locked -p unjank --features tracing --bench calls
	$(CARGO) bench --locked -p unjank-stack-sampler

## chaos: kill server and engine at random moments under load, then verify that nothing was lost or doubled
chaos: check-tools
	$(CARGO) build --release --locked --workspace
	target/release/unjank-loadtest chaos --server-bin target/release/unjank --kills 20 --engine-kills 20

## openapi: renew server/openapi.json, the API document, from the code
openapi:
	$(CARGO) build --locked -p unjank-server --bin unjank
	$(CARGO) run --quiet --locked -p unjank-server --bin unjank -- openapi > server/openapi.json

## clients: the programs that others wrote and tests are made with: clients of ClickHouse and of OpenFeature, schemathesis
clients:
	@sh server/engine/tests/clients/install.sh
	@sh server/tests/openfeature/install.sh
	@sh server/tests/schemathesis/install.sh

## alerts: the rules for Prometheus, where promtool is installed; a part of lint
.PHONY: alerts
lint: alerts
alerts:
	@if command -v promtool >/dev/null 2>&1; then promtool check config dashboards/prometheus/prometheus.yml && promtool test rules dashboards/prometheus/alerts_test.yml; \
	else echo "alerts not checked: promtool comes with Prometheus"; fi

## postgres: PostgreSQL for the tests: the machine's own, else fetched with npm
postgres:
	@sh server/tests/postgres/install.sh

check-tools:
	@command -v $(CARGO) >/dev/null 2>&1 || { echo "cargo is missing: install Rust, see rust-toolchain.toml for the version"; exit 1; }
	@command -v npm >/dev/null 2>&1 || { echo "npm is missing: install node with npm; it fetches the embedded engine's library"; exit 1; }
	@command -v cc >/dev/null 2>&1 || { echo "a C compiler is missing: install gcc or clang"; exit 1; }

help:
	@sed -n 's/^## //p' Makefile
