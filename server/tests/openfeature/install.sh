#!/bin/sh
# Installs OpenFeature's clients for the tests of flags into .cache/openfeature, unless they are installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/openfeature
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" | cksum)

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
for tool in python3 node npm; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is missing: flags are tested with OpenFeature's Python and JavaScript clients" >&2; exit 1; }
done
mkdir -p "$target"
rm -rf "$target/installed" "$target/venv"
python3 -m venv "$target/venv" || { echo "python3 cannot make virtual environments: install its venv module (python3-venv)" >&2; exit 1; }
"$target/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
echo "$wanted" > "$target/installed"
