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
# The programs, and the libraries of theirs that the machine lacks.
packages() {
    apt-get install --simulate --no-install-recommends $missing 2>/dev/null | awk '/^Inst/ { print $2 }'
}
if command -v apt-get >/dev/null 2>&1 && wanted=$(packages) && [ -n "$wanted" ] \
    && (cd "$target/packages" && apt-get download $wanted >/dev/null 2>&1); then
    for package in "$target"/packages/*.deb; do dpkg-deb -x "$package" "$target"; done
else
    echo "not tested, because Debian's packages cannot be had:$missing" >&2
fi
