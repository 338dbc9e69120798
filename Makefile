# The commands of the project. `make run` and `make test` need only cargo, node with npm, make and a C compiler.

CARGO ?= cargo
# A folder of recorded batches to replay after the tests: make test REPLAY=folder
REPLAY ?=
CACHE := .cache
# What does not depend on a failure runs all the same, so that one run says everything.
MAKEFLAGS += --keep-going
# Says how long a step took.
STAGE := sh .ci/stage
# All crates, with the optional features of the SDK.
ALL := --locked --workspace --features unjank/tracing,unjank/test-kit,unjank/reqwest,unjank/egui,unjank/live-terminal,unjank/platform-verifier
WEB := dashboards/web
WEB_INSTALLED := $(WEB)/node_modules/.package-lock.json
WEB_SOURCES := server/openapi.json $(shell find $(WEB)/src $(WEB)/public $(WEB)/build -type f) $(wildcard $(WEB)/*.*)

.PHONY: run test lint fmt bench chaos openapi check-tools

## run: build and start the server with the embedded engine, on 127.0.0.1:8080, with the ingest key `demo` for all apps
run: check-tools web
	UNJANK_INGEST_KEYS=$${UNJANK_INGEST_KEYS:-demo=*} $(CARGO) run --release --locked -p unjank-server --bin unjank -- serve

## setup: install or find all that lint and tests need: programs of others, the browser, the engine's library
.PHONY: setup
setup: check-tools
	@$(STAGE) setup sh .ci/setup

## test: run all tests, with real engines and real clients
test: setup test-rust test-documentation test-web walks $(if $(REPLAY),replay-built)

# Everything is built once. The programs in $(BUILT) are those that walks and replays start, too.
BUILT := $(or $(CARGO_TARGET_DIR),target)/debug
.PHONY: test-build test-rust test-documentation test-web walks replay-built
test-build: web
	@$(STAGE) "build tests" $(CARGO) test --no-run $(ALL)
	@$(STAGE) "build the shipped example" $(CARGO) rustc --quiet --locked --profile shipped -p unjank-shipped-shop --bin shop -- -C link-arg=-Wl,--build-id=sha1

test-rust: test-build
	@$(STAGE) "fetch the engine" $(BUILT)/unjank engine --fetch-only
	@$(STAGE) tests sh server/tests/with-servers.sh $(BUILT)/unjank bash .ci/tests $(ALL)

# What cargo-nextest cannot run: tests without a harness, and the examples in comments.
test-documentation: test-build
	@$(STAGE) "tests without a harness" $(CARGO) test $(ALL) --test main_thread --test fork
	@$(STAGE) "examples in comments" $(CARGO) test $(ALL) --doc

test-web: $(WEB_INSTALLED)
	@$(STAGE) "tests of the web interface" npm --prefix $(WEB) test --silent

walks: test-build
	@$(STAGE) walks npm --prefix $(WEB) run --silent e2e

replay-built: test-build
	@$(STAGE) replay $(BUILT)/unjank-loadtest replay --server-bin $(BUILT)/unjank --dir "$(REPLAY)" --verify

## test-other-days: run all tests and the walks as if it were 9, 40 or 400 days later, a 29th of February, or a minute before a new year; needs
## faketime. DAY="+40d" for one of them
.PHONY: test-other-days
test-other-days: setup test-build
	@$(STAGE) "tests on other days" sh .ci/other-days $(BUILT)/unjank $(ALL)

## replay: send recorded batches to a fresh server and verify that each event is stored exactly once
.PHONY: replay
replay: check-tools
	$(CARGO) build --locked --workspace
	$(BUILT)/unjank-loadtest replay --server-bin $(BUILT)/unjank --dir "$(REPLAY)" --verify

## rules: check the rules of ARCHITECTURE.md and the format, within seconds; part of lint
.PHONY: rules
rules: check-tools
	@$(STAGE) format $(CARGO) fmt --all --check
	@$(STAGE) rules $(CARGO) test --locked --quiet -p unjank-architecture

## lint: check formatting, clippy and docs, and licences if cargo-deny is installed
lint: rules clippy rustdoc lint-web licences

.PHONY: clippy rustdoc lint-web licences
clippy: check-tools
	@$(STAGE) clippy $(CARGO) clippy $(ALL) --all-targets -- -D warnings

rustdoc: check-tools
	@RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(STAGE) rustdoc $(CARGO) doc $(ALL) --no-deps --document-private-items -q

lint-web: $(WEB_INSTALLED)
	@$(STAGE) "lint of the web interface" npm --prefix $(WEB) run --silent lint

licences:
	@if command -v cargo-deny >/dev/null 2>&1; then $(STAGE) "licences and advisories" cargo deny --locked check; \
	else echo "licences and advisories not checked: cargo install cargo-deny"; fi

## fmt: format the code
fmt: $(WEB_INSTALLED)
	$(CARGO) fmt --all
	cd $(WEB) && npm run --silent fmt

## web: build the web interface, which the server's binary embeds
.PHONY: web e2e
web: check-tools $(WEB)/dist/index.html

$(WEB)/dist/index.html: $(WEB_INSTALLED) $(WEB_SOURCES)
	@$(STAGE) "build the web interface" npm --prefix $(WEB) run --silent build

.PHONY: web-packages
web-packages: $(WEB_INSTALLED)

$(WEB_INSTALLED): $(WEB)/package.json $(WEB)/package-lock.json
	@$(STAGE) "packages of the web interface" npm --prefix $(WEB) ci --loglevel error --no-fund --no-audit
	@touch $@

## e2e: test the web interface of a real server in a real browser
e2e: check-tools web
	$(CARGO) build --locked -p unjank-server --bin unjank
	cd $(WEB) && npm run --silent e2e

## pictures: regenerate the pictures of the README (docs/pictures) from the data of the demo
.PHONY: pictures
pictures: check-tools web
	$(CARGO) build --locked -p unjank-server --bin unjank
	cd $(WEB) && npm run --silent pictures

## bench: measure the figures of loadtest/RESULTS.md on this machine
bench: check-tools
	$(CARGO) build --release --locked --workspace
	target/release/unjank-loadtest bench --server-bin target/release/unjank
	target/release/unjank-loadtest symbols --server-bin target/release/unjank
	target/release/unjank-loadtest changes --server-bin target/release/unjank
	$(CARGO) bench --locked -p unjank-server --bench remote_config -- --quick
	$(CARGO) bench --locked -p unjank-symbols
	$(CARGO) bench --locked -p unjank --features tracing --bench calls
	$(MAKE) bench-spans
	$(CARGO) bench --locked -p unjank-stack-sampler

## bench-spans: measure a recorded span beside those of fastrace, opentelemetry, tracing-opentelemetry and puffin
.PHONY: bench-spans
bench-spans:
	CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),$(CURDIR)/target) $(CARGO) bench --locked --manifest-path client-sdk/comparison/Cargo.toml

## test-egui-app: check what the SDK measures in an app that others wrote, the demo of egui
.PHONY: test-egui-app
test-egui-app:
	CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),$(CURDIR)/target) $(CARGO) test --locked --manifest-path client-sdk/egui-app/Cargo.toml

## soak: keep up a load of RATE batches a second (200 events each) for MINUTES minutes; report the cost of an event over time and by table,
## the backlog in the log, and how soon rows can be queried. FIND=--find-rate searches for the highest sustained rate
RATE ?= 1250
MINUTES ?= 30
.PHONY: soak
soak: check-tools
	$(CARGO) build --release --locked -p unjank-server -p unjank-loadtest
	target/release/unjank-loadtest soak --server-bin target/release/unjank --rate $(RATE) --minutes $(MINUTES) $(FIND)

## aarch64: run the SDK's tests on emulated aarch64; needs qemu-aarch64-static (qemu-user-static), aarch64-linux-gnu-gcc with its
## libc (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross) and `rustup target add aarch64-unknown-linux-gnu`
.PHONY: aarch64
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64-static
aarch64: export QEMU_LD_PREFIX := /usr/aarch64-linux-gnu
# The skipped tests need what the emulator lacks: it starts no second program, maps no vdso, and hides pending signals.
aarch64:
	$(CARGO) test --locked --target aarch64-unknown-linux-gnu -p unjank-monitors -p unjank-spool --tests -- \
		--skip everything_that_was_synced_survives_being_killed
	$(CARGO) test --locked --target aarch64-unknown-linux-gnu -p unjank-stack-sampler --tests -- \
		--skip the_code_of_the_kernel_is_unwound --skip unanswered_signals_do_not_pile_up
	$(CARGO) test --locked --target aarch64-unknown-linux-gnu -p unjank --features unjank/tracing,unjank/test-kit --lib --test it

## package: check that the crates of the SDK can be published: builds each one from its packed sources
.PHONY: package
PACKAGES := unjank-protocol unjank-columns unjank-monitors unjank-macros unjank-spool unjank-stack-sampler unjank
# Cargo takes the packed crates for crates that never change: it would use again what an earlier run unpacked and built.
package: check-tools
	rm -rf $${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/unjank-* target/packed/debug/.fingerprint/unjank-*
	@$(STAGE) package $(CARGO) package --locked --allow-dirty --quiet --target-dir target/packed $(addprefix -p ,$(PACKAGES))

## platforms: type-check the SDK for phones and desktops, without their C compilers
.PHONY: platforms
platforms:
	@CARGO="$(CARGO)" sh client-sdk/platforms.sh

## bench-queries: measure the queries of the screens on 100 million spans, 20 million frame windows and 10 million janks; the data is
## generated once (some minutes) and kept in target/bench-queries. SPANS=1000000 for a quick run
SPANS ?= 100000000
.PHONY: bench-queries
bench-queries: check-tools
	$(CARGO) build --release --locked -p unjank-server -p unjank-loadtest
	target/release/unjank-loadtest queries --server-bin target/release/unjank --data-dir target/bench-queries --spans $(SPANS)

## bench-cold-start: measure how soon a server with the data of bench-queries takes batches, answers queries and stops.
## COLD=--drop-caches as after a reboot; needs root
.PHONY: bench-cold-start
bench-cold-start: check-tools
	$(CARGO) build --release --locked -p unjank-server -p unjank-loadtest
	target/release/unjank-loadtest cold-start --server-bin target/release/unjank --data-dir target/bench-queries $(COLD)

## bench-alerts: measure whether alert rules find slow-downs of simulated fleets, and do not fire for DAYS days without a change, evaluated
## every STEP minutes; the fleets are kept in target/bench-alerts
DAYS ?= 30
STEP ?= 180
.PHONY: bench-alerts
bench-alerts: check-tools
	$(CARGO) build --release --locked -p unjank-server -p unjank-loadtest
	target/release/unjank-loadtest alerts --server-bin target/release/unjank --data-dir target/bench-alerts --days $(DAYS) --step $(STEP)

## chaos: kill server and engine at random moments under load, then inject one fault at a time (system calls, power, disks, files, tables),
## and verify each time that no event is lost or duplicated. Faults that need strace, root or a loop device are skipped without them.
## FAULTS="power-cut --quick" injects one fault in a short run
chaos: check-tools
	$(CARGO) build --release --locked --workspace
	target/release/unjank-loadtest chaos --server-bin target/release/unjank --kills 20 --engine-kills 20
	target/release/unjank-loadtest faults --server-bin target/release/unjank $(FAULTS)

## audit: check Rust and npm packages for known vulnerabilities; needs cargo-deny and the internet. ADVISORIES=folder uses a clone of the
## RustSec database instead of fetching it
.PHONY: audit
ADVISORY_DB = https://github.com/RustSec/advisory-db
audit: $(WEB_INSTALLED)
	$(if $(ADVISORIES),GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.$(ADVISORIES).insteadOf GIT_CONFIG_VALUE_0=$(ADVISORY_DB)) \
		cargo deny --locked check advisories
	cd $(WEB) && npm audit --omit=dev

## attacks: attack a release build, one attack at a time, and measure the effect on others: at most 200 ms at the 99th percentile and
## 100 MiB of memory. Needs a quiet machine
.PHONY: attacks
attacks: check-tools
	$(CARGO) build --release --locked -p unjank-server --bin unjank
	UNJANK_ATTACK_SERVER=$(CURDIR)/target/release/unjank UNJANK_ATTACK_P99_MS=200 \
		$(CARGO) test --locked -p unjank-server --test it attacks:: -- --nocapture --test-threads 1

## simulate: run the server on a simulated disk and a simulated ClickHouse with faults, for SEEDS seeds; SEED=7 prints the history of one; SERVERS=2 runs two servers
SEEDS ?= 20000
.PHONY: simulate
simulate: check-tools
	FROM=$(FROM) SEEDS=$(SEEDS) SEED=$(SEED) $(CARGO) test --release --locked -p unjank-server --lib -- \
	  --exact store::simulation::$(if $(filter 2,$(SERVERS)),seeds_of_two_servers_hold,seeds_hold) --nocapture

## openapi: regenerate server/openapi.json, the API document, from the code
openapi:
	$(CARGO) build --locked -p unjank-server --bin unjank
	$(CARGO) run --quiet --locked -p unjank-server --bin unjank -- openapi > server/openapi.json

## reference: regenerate docs/reference from the code: settings, metrics and remote configuration
.PHONY: reference
reference:
	$(CARGO) build --locked -p unjank-server --bin unjank
	mkdir -p docs/reference
	for page in settings metrics remote-configuration; do \
		$(CARGO) run --quiet --locked -p unjank-server --bin unjank -- reference $$page > docs/reference/$$page.md || exit 1; done

## baseline: write migrations/clickhouse/baseline.sql, the schema of new installations, from the migrations
.PHONY: baseline
baseline:
	UNJANK_WRITE_BASELINE=1 $(CARGO) test --locked -p unjank-server --test it -- schema::the_baseline; \
	$(CARGO) test --locked -p unjank-server --test it -- schema::

## alerts: check the rules for Prometheus if promtool is installed; part of lint
.PHONY: alerts
lint: alerts
alerts:
	@if command -v promtool >/dev/null 2>&1; then promtool check config dashboards/prometheus/prometheus.yml && promtool test rules dashboards/prometheus/alerts_test.yml; \
	else echo "alerts not checked: promtool comes with Prometheus"; fi

check-tools:
	@command -v $(CARGO) >/dev/null 2>&1 || { echo "cargo is missing: install Rust, see rust-toolchain.toml for the version"; exit 1; }
	@command -v npm >/dev/null 2>&1 || { echo "npm is missing: install node with npm; it builds the web interface and downloads the embedded engine's library"; exit 1; }
	@command -v cc >/dev/null 2>&1 || { echo "a C compiler is missing: install gcc or clang"; exit 1; }
	@command -v c++ >/dev/null 2>&1 || { echo "a C++ compiler is missing: install g++ or clang"; exit 1; }

help:
	@sed -n 's/^## //p' Makefile
