#!/bin/sh
# Runs a command with one engine and one PostgreSQL for all tests in it. Both end with this script, however it ends.
# Usage: with-servers.sh <program `unjank`> <command…>
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
unjank=$1
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/unjank-tests-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM
mkfifo "$folder/engine" "$folder/postgres"
# Only this script holds the other ends: when it ends, the servers do.
sh "$here/engine/run.sh" "$unjank" < "$folder/engine" > "$folder/engine.address" &
engine=$!
exec 8> "$folder/engine"
sh "$here/postgres/run.sh" < "$folder/postgres" > "$folder/postgres.port" 8>&- &
postgres=$!
exec 9> "$folder/postgres"

# Waits for the first line that a server writes to a file.
wait_for_line() {
    until [ -s "$1" ]; do
        kill -0 "$2" 2>/dev/null || { echo "$3 did not start; its output is above" >&2; exit 1; }
        sleep 0.1
    done
}
wait_for_line "$folder/engine.address" "$engine" "the engine"
wait_for_line "$folder/postgres.port" "$postgres" PostgreSQL
UNJANK_TEST_ENGINE=$(sed -n '1s/.*"url":"\([^"]*\)".*/\1/p' "$folder/engine.address")
UNJANK_TEST_POSTGRES=$(head -n 1 "$folder/postgres.port")
# Tests keep all processors busy: an engine of their own with a lower priority would wait for minutes.
UNJANK_ENGINE_NICE=0
export UNJANK_TEST_ENGINE UNJANK_TEST_POSTGRES UNJANK_ENGINE_NICE
# Nothing is left behind, even if this script is killed.
rm -rf "$folder"
status=0
"$@" 8>&- 9>&- || status=$?
exec 8>&- 9>&-
wait
exit "$status"
