"""ClickHouse's Python client against the engine: everything it does must work as with a server."""

import datetime
import os
import threading
import time
import urllib.parse

import clickhouse_connect
import clickhouse_driver
from clickhouse_connect.driver.exceptions import DatabaseError

url = urllib.parse.urlparse(os.environ["ENGINE_URL"])
PASSWORD = os.environ["ENGINE_PASSWORD"]
FAILS_LATE = "SELECT throwIf(number = 700000) AS x, rand64() AS r FROM numbers(2000000)"


def client(**more):
    options = {"host": url.hostname, "port": url.port, "username": "admin", "password": PASSWORD}
    return clickhouse_connect.get_client(**{**options, **more})


def memory():
    with open(f"/proc/{os.environ['ENGINE_PID']}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def refused(work):
    try:
        work()
    except DatabaseError as error:
        return str(error)
    raise AssertionError("it should have failed")


def tables_and_formats():
    c = client()
    assert c.ping() and c.server_version.startswith("26.") and str(c.server_tz) == "UTC"
    c.command("CREATE TABLE t (a UInt32, s String, l LowCardinality(String), n Nullable(Float64), d DateTime64(3), r Array(String)) "
              "ENGINE = MergeTree ORDER BY a")
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)
    rows = [[i, f"ä{i}\t'", f"k{i % 3}", None if i % 2 else 0.5, when, ["x", str(i)]] for i in range(50000)]
    summary = c.insert("t", rows, column_names=["a", "s", "l", "n", "d", "r"])
    assert summary.written_rows == 50000, summary.summary
    found = c.query("SELECT * FROM t ORDER BY a")
    assert [list(row) for row in found.result_rows] == rows
    assert c.raw_insert("t", ["a", "s"], b"50000,csv\n", fmt="CSV").written_rows == 1
    c.raw_insert("t", ["a", "s"], b'{"a":50001,"s":"json"}\n', fmt="JSONEachRow", compression=None)
    c.command("INSERT INTO t (a, s) VALUES (50002, 'values; -- ')")
    assert c.command("SELECT count() FROM t") == 50003
    assert c.raw_query("SELECT s FROM t WHERE a = 50002", fmt="TSV") == b"values; -- \n"
    assert c.query("DESCRIBE TABLE t").row_count == 6
    assert c.command("EXISTS TABLE t") == 1


def packing():
    for method in ["lz4", "zstd", "gzip", False]:
        c = client(compress=method)
        c.command("CREATE OR REPLACE TABLE packed (a UInt64, s String) ENGINE = Memory")
        c.insert("packed", [[i, "x" * (i % 50)] for i in range(20000)], column_names=["a", "s"])
        assert c.query("SELECT count(), sum(length(s)) FROM packed").result_rows == [(20000, 490000)], method
        assert len(c.query("SELECT * FROM packed").result_rows) == 20000


def parameters():
    c = client()
    evil = "'; DROP TABLE t; --\\ \n\t{x:String}"
    assert c.query("SELECT {v:String} AS v, {n:UInt64}, {l:Array(String)}", parameters={"v": evil, "n": 2**63, "l": ["a", "b'"]}).result_rows == [
        (evil, 2**63, ["a", "b'"])
    ]
    in_form = client(form_encode_query_params=True)
    long = "y" * 100000 + evil
    assert in_form.query("SELECT {v:String}", parameters={"v": long}).result_rows == [(long,)]


def settings():
    c = client()
    assert c.query("SELECT getSetting('max_block_size')", settings={"max_block_size": 1234}).result_rows == [(1234,)]
    assert c.query("SELECT getSetting('max_block_size')").result_rows != [(1234,)]
    assert "Code: 396" in refused(lambda: c.query("SELECT number FROM numbers(100)", settings={"max_result_rows": 5, "result_overflow_mode": "throw"}))
    assert "READONLY" in refused(lambda: c.command("CREATE TABLE x (a Int8) ENGINE = Memory", settings={"readonly": 2}))
    # Its session keeps its temporary tables.
    c.command("CREATE TEMPORARY TABLE mine (a UInt8)")
    c.insert("mine", [[1], [2]], column_names=["a"])
    assert c.command("SELECT sum(a) FROM mine") == 3
    assert "UNKNOWN_TABLE" in refused(lambda: client().query("SELECT * FROM mine"))


def errors():
    c = client()
    assert "Code: 60" in refused(lambda: c.query("SELECT * FROM nowhere"))
    assert "Code: 62" in refused(lambda: c.command("SELEC 1"))
    assert "code: 516" in refused(lambda: client(password="wrong"))
    # A query waits for its end, a stream does not: both must fail, however much came before.
    assert "395" in refused(lambda: c.query(FAILS_LATE))
    for method in ["lz4", "zstd", "gzip", False]:
        streaming = client(compress=method)

        def read_all():
            with streaming.query_rows_stream(FAILS_LATE, settings={"wait_end_of_query": 0}) as rows:
                for _ in rows:
                    pass

        assert "395" in refused(read_all), method


def streaming():
    c = client()
    before = memory()
    count = total = most = 0
    with c.query_column_block_stream("SELECT number, toString(number) AS s FROM numbers(3000000)") as blocks:
        for numbers, _ in blocks:
            count += len(numbers)
            total += sum(numbers)
            most = max(most, memory())
    assert (count, total) == (3000000, 2999999 * 1500000)
    assert most < before + (200 << 20), f"{(most - before) >> 20} MiB more"


def ids_and_summaries():
    c = client()
    found = c.query("SELECT number FROM numbers(1000)", settings={"query_id": "python-1", "wait_end_of_query": 1})
    assert found.query_id == "python-1" and found.summary["result_rows"] == "1000", found.summary
    # Without a session of its own, each thread's statement is free to run.
    shared = client(autogenerate_session_id=False)
    answers = {}

    def ask(number):
        answers[number] = shared.command(f"SELECT sum(number) + {number} FROM numbers(1000000)")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: 499999500000 + number for number in range(16)}


def cancelled():
    # ClickHouse ends the queries of readers whose connection is gone.
    c = client(username="reader", autogenerate_session_id=False, send_receive_timeout=1, query_retries=0)
    began = time.monotonic()
    try:
        c.query("SELECT max(sipHash64(number)) FROM numbers(1000000000000)")
        raise AssertionError("it should have timed out")
    except AssertionError:
        raise
    except Exception:
        assert time.monotonic() - began < 20
    c.close_connections()
    patient = client(autogenerate_session_id=False)
    until = time.monotonic() + 20
    while patient.command("SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%system.processes%'"):
        assert time.monotonic() < until, "the statement of a client that is gone still runs"
        time.sleep(0.05)


def native():
    """ClickHouse's native protocol, as `clickhouse-client` and Grafana's native mode speak it."""
    host, port = os.environ["ENGINE_TCP"].split(":")
    c = clickhouse_driver.Client(host, int(port), user="writer", password=PASSWORD, database="default")
    c.execute("CREATE DATABASE IF NOT EXISTS unjank")
    c.execute("CREATE TABLE unjank.native (a UInt64, s LowCardinality(String)) ENGINE = MergeTree ORDER BY a")
    assert c.execute("INSERT INTO unjank.native VALUES", [(i, f"k{i % 3}") for i in range(10000)]) == 10000
    reader = clickhouse_driver.Client(host, int(port), user="reader", password=PASSWORD, database="unjank")
    assert reader.execute("SELECT count(), uniqExact(s) FROM native") == [(10000, 3)]
    for user, password, code in [("default", "", 700), ("reader", "", 516), ("admin", "wrong", 516)]:
        try:
            clickhouse_driver.Client(host, int(port), user=user, password=password).execute("SELECT 1")
            raise SystemExit(f"{user} got in")
        except clickhouse_driver.errors.ServerException as error:
            assert error.code == code, (user, error.code)


for work in [native, tables_and_formats, packing, parameters, settings, errors, streaming, ids_and_summaries, cancelled]:
    work()
    print(work.__name__, "ok")
