#!/bin/sh
# Installs sentry-cli for the tests of uploads into .cache/sentry-cli, unless it is installed already. npm has it for Linux on x64 and
# arm64, and for macOS. Elsewhere, the tests that need it are skipped.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/sentry-cli
wanted=$(cksum < "$here/package-lock.json")

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
command -v npm >/dev/null 2>&1 || { echo "npm is missing: it downloads sentry-cli, which uploads are tested with" >&2; exit 1; }
mkdir -p "$target"
rm -rf "$target/installed" "$target/sentry-cli"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
for program in "$target"/node_modules/@sentry/cli-*/bin/sentry-cli; do
    if "$program" --version >/dev/null 2>&1; then ln -s "$program" "$target/sentry-cli"; fi
done
[ -e "$target/sentry-cli" ] || echo "npm has no sentry-cli for this machine: uploads by sentry-cli are not tested" >&2
echo "$wanted" > "$target/installed"
