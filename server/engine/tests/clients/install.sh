#!/bin/sh
# Installs the ClickHouse clients for the tests of the engine into .cache/clients, unless they are installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../../.." && pwd)/.cache/clients
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" | cksum)

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
command -v python3 >/dev/null 2>&1 || { echo "python3 is missing: the engine is tested with ClickHouse's Python client" >&2; exit 1; }
command -v node >/dev/null 2>&1 || { echo "node is missing: the engine is tested with ClickHouse's JavaScript client" >&2; exit 1; }
command -v npm >/dev/null 2>&1 || { echo "npm is missing: it installs ClickHouse's JavaScript client, which the engine is tested with" >&2; exit 1; }
mkdir -p "$target"
rm -rf "$target/installed" "$target/venv"
python3 -m venv "$target/venv" || { echo "python3 cannot make virtual environments: install its venv module (python3-venv)" >&2; exit 1; }
"$target/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit)
echo "$wanted" > "$target/installed"
