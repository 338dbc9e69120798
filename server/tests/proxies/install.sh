#!/bin/sh
# Gets nginx, HAProxy and Caddy for the tests of docs/proxies, as packages of Debian unpacked into .cache/proxies, unless the machine has
# them. Where neither works, the test says which proxies it leaves out.
set -eu
target=$(CDPATH= cd -- "$(dirname -- "$0")/../../.." && pwd)/.cache/proxies
PATH=$PATH:/usr/sbin:$target/usr/sbin:$target/usr/bin
missing=""
for program in nginx haproxy caddy; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
mkdir -p "$target/packages"
# Libraries that other programs of a small system do not need.
if command -v apt-get >/dev/null 2>&1 && (cd "$target/packages" && apt-get download $missing liblua5.3-0 libpcre2-posix3 >/dev/null 2>&1); then
    for package in "$target"/packages/*.deb; do dpkg-deb -x "$package" "$target"; done
else
    echo "not tested, because Debian's packages cannot be had:$missing" >&2
fi
