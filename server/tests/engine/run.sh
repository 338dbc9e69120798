#!/bin/sh
# Runs a temporary engine until standard input ends, which happens however the tests end. Then deletes its data.
# Usage: run.sh <program `unjank`>; prints a line with the engine's address.
set -eu
# An interrupt is meant for the tests. When they end, standard input ends.
trap '' HUP INT TERM
# In memory if there is room, because each of thousands of tables is synced to the disk when it is made. The folder takes some 500 MB.
base=${TMPDIR:-/tmp}
if [ "$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null; then base=/dev/shm; fi
folder=$(mktemp -d "$base/unjank-engine-XXXXXX")
trap 'rm -rf "$folder"' EXIT
# Hundreds of tests each have a database in this engine, and each table keeps a buffer for its deduplication log. The engine counts
# 40 MiB for each database, although hardly any of it is ever touched.
# UNJANK_TEST_CLOCK can name a command that runs another one on another day.
# shellcheck disable=SC2086 # a command and its arguments
UNJANK_ENGINE_PASSWORD=test ${UNJANK_TEST_CLOCK:-} "$1" engine --listen 127.0.0.1:0 --until-stdin-ends --log warn --max-memory-bytes 17179869184 --data-dir "$folder"
