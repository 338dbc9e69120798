#!/bin/sh
# Installs a small S3 server for the tests of the symbol store into .cache/s3, unless it is installed already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/s3
wanted=$(cksum < "$here/package-lock.json")

if [ -f "$target/installed" ] && [ "$(cat "$target/installed")" = "$wanted" ]; then
    exit 0
fi
for tool in node npm; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is missing: buckets are tested with an S3 server from npm" >&2; exit 1; }
done
mkdir -p "$target"
rm -f "$target/installed"
cp "$here/package.json" "$here/package-lock.json" "$target/"
(cd "$target" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts)
echo "$wanted" > "$target/installed"
