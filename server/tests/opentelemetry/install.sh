#!/bin/sh
# Installs exporters of OpenTelemetry into .cache/opentelemetry, unless they are installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/opentelemetry
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" "$here/web/package-lock.json" | cksum)

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
for tool in python3 node npm; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is missing: OTLP is tested with the exporters of OpenTelemetry for Python and JavaScript" >&2; exit 1; }
done
mkdir -p "$target/web"
rm -rf "$target/installed" "$target/venv"
python3 -m venv "$target/venv" || { echo "python3 cannot make virtual environments: install its venv module (python3-venv)" >&2; exit 1; }
"$target/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
for part in . web; do
    cp "$here/$part/package.json" "$here/$part/package-lock.json" "$target/$part/"
    (cd "$target/$part" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
done
echo "$wanted" > "$target/installed"
