#!/bin/sh
# Finds valgrind for a test of the SDK on this machine. If it is missing, unpacks Debian's package into .cache/valgrind without installing
# it. Where neither works, the test is skipped and says so.
set -eu
target=$(CDPATH= cd -- "$(dirname -- "$0")/../../../.." && pwd)/.cache/valgrind

runs() { command -v "$1" >/dev/null 2>&1 && "$1" -q true >/dev/null 2>&1; }
unpacked_runs() (
    export VALGRIND_LIB="$target/usr/libexec/valgrind"
    runs "$target/usr/bin/valgrind"
)

if runs valgrind || unpacked_runs; then exit 0; fi
mkdir -p "$target"
cd "$target"
rm -f ./*.deb
if command -v apt-get >/dev/null 2>&1 && apt-get download -qq -o APT::Sandbox::User=root valgrind >/dev/null 2>&1; then
    for package in ./*.deb; do dpkg -x "$package" .; done
    rm -f ./*.deb
fi
unpacked_runs || echo "the SDK is not tested under valgrind: install it (Debian, Ubuntu: valgrind and libc6-dbg)" >&2
