#!/bin/sh
# Installs schemathesis, which tests the API against its document, into .cache/schemathesis, unless it is installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/schemathesis
wanted=$(cksum < "$here/requirements.txt")

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
command -v python3 >/dev/null 2>&1 || { echo "python3 is missing: the API is tested with schemathesis" >&2; exit 1; }
mkdir -p "$target"
rm -rf "$target/installed" "$target/venv"
python3 -m venv "$target/venv" || { echo "python3 cannot make virtual environments: install its venv module (python3-venv)" >&2; exit 1; }
"$target/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
echo "$wanted" > "$target/installed"
