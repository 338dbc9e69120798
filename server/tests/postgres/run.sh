#!/bin/sh
# Runs a temporary PostgreSQL until standard input ends, which happens however the tests end. Then deletes it completely.
# Prints its port. The password of the user `postgres` is `test`. Its programs come from the machine or from npm, see install.sh.
set -eu
# An interrupt is meant for the tests. When they end, standard input ends.
trap '' HUP INT TERM
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
ends_with_this=
if command -v setpriv >/dev/null 2>&1; then ends_with_this="setpriv --pdeathsig QUIT"; fi
if [ "$(id -u)" = 0 ]; then
    # PostgreSQL refuses to run as root; nobody owns nothing.
    exec setpriv --reuid 65534 --regid 65534 --clear-groups sh "$here/run.sh"
fi
bin=$(sh "$here/install.sh" --where)
folder=$(mktemp -d "${TMPDIR:-/tmp}/unjank-postgres-XXXXXX")
cd "$folder"
end() {
    "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap end EXIT

echo test > password
"$bin/initdb" -D data -U postgres -A scram-sha-256 --pwfile=password -E UTF8 --no-locale --no-sync > initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
for try in 1 2 3 4 5; do
    port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
    options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories= -c max_connections=300 -c fsync=off -c full_page_writes=off -c shared_buffers=32MB"
    # As the engine, it may run on another day. It ends with this script, even if that is killed.
    # shellcheck disable=SC2086 # commands and their arguments
    $ends_with_this ${UNJANK_TEST_CLOCK:-} "$bin/postgres" -D data $options > server.log 2>&1 < /dev/null &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
        # The eighth line says how far it is.
        if sed -n 8p data/postmaster.pid 2>/dev/null | grep -q ready; then
            echo "$port"
            cat > /dev/null
            exit
        fi
        sleep 0.05
    done
    # Another program may listen on the port.
    grep -q "could not bind" server.log || break
done
cat server.log >&2
exit 1
