#!/bin/sh
# Installs the client of the Model Context Protocol for the tests of `unjank mcp` into .cache/mcp, unless it is installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/mcp
wanted=$(cksum < "$here/package-lock.json")

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
command -v npm >/dev/null 2>&1 || { echo "npm is missing: it downloads the client for the tests of \`unjank mcp\`" >&2; exit 1; }
mkdir -p "$target"
rm -f "$target/installed"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
echo "$wanted" > "$target/installed"
