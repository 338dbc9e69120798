#!/bin/sh
# Runs a temporary PostgreSQL until standard input ends, which happens however the tests end. Then deletes it completely.
# Usage: run.sh <folder of the programs> <empty folder> <port>; the password of the user `postgres` is `test`. Prints `ready`.
set -eu
bin=$1 folder=$2 port=$3
# An interrupt is meant for the tests. When they end, standard input ends.
trap '' HUP INT TERM
cd "$folder"
end() {
    "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap end EXIT

echo test > password
"$bin/initdb" -D data -U postgres -A scram-sha-256 --pwfile=password -E UTF8 --no-locale --no-sync > initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories= -c max_connections=300 -c fsync=off -c full_page_writes=off -c shared_buffers=32MB"
"$bin/pg_ctl" -D data -w -t 60 -l server.log -o "$options" start > start.log 2>&1 || { cat start.log server.log >&2; exit 1; }
echo ready
cat > /dev/null
