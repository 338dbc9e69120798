#!/bin/sh
# Finds Alertmanager for the tests of notifications on this machine. If it is missing, unpacks Debian's package into .cache/alertmanager
# without installing it.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$(CDPATH= cd -- "$here/../../.." && pwd)/.cache/alertmanager

for program in prometheus-alertmanager alertmanager "$target/usr/bin/prometheus-alertmanager"; do
    if command -v "$program" >/dev/null 2>&1; then
        exit 0
    fi
done
sentence="Alertmanager is missing and cannot be fetched: install prometheus-alertmanager (Debian, Ubuntu), or put alertmanager of https://github.com/prometheus/alertmanager/releases on the PATH; notifications are tested with it"
for tool in apt-get dpkg; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$sentence" >&2; exit 1; }
done
mkdir -p "$target"
cd "$target"
rm -f ./*.deb
download() { apt-get download -qq -o APT::Sandbox::User=root prometheus-alertmanager >&2; }
# A new machine has no list of packages.
download || { [ "$(id -u)" = 0 ] && apt-get update -qq >&2 && download; } || { echo "$sentence (is the list of packages there? apt-get update)" >&2; exit 1; }
dpkg -x ./prometheus-alertmanager_*.deb . || { echo "$sentence" >&2; exit 1; }
rm -f ./*.deb
# Debian's program contains the path of its templates. Replaces it by a relative path of the same length.
LC_ALL=C sed -i 's#/usr/share/prometheus/alertmanager#usr//share/prometheus/alertmanager#g' usr/bin/prometheus-alertmanager
"$target/usr/bin/prometheus-alertmanager" --version >/dev/null 2>&1 || { echo "$sentence (the package of Debian does not run here)" >&2; exit 1; }
