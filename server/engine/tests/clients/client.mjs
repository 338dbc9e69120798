// ClickHouse's JavaScript client against the engine: everything it does must work as with a server.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'

const { ClickHouseLogLevel, createClient } = createRequire(import.meta.url)(process.env.CLIENT_MODULE)
const FAILS_LATE = 'SELECT throwIf(number = 700000) AS x, rand64() AS r FROM numbers(2000000)'

const client = (more = {}) =>
  createClient({ log: { level: ClickHouseLogLevel.OFF }, url: process.env.ENGINE_URL, username: 'admin', password: process.env.ENGINE_PASSWORD, ...more })

const memory = () =>
  Number(readFileSync(`/proc/${process.env.ENGINE_PID}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024

const rows = async (c, query, more = {}) => (await c.query({ query, format: 'JSONEachRow', ...more })).json()

const works = {
  async tablesAndFormats() {
    const c = client()
    assert.equal((await c.ping()).success, true)
    assert.equal((await c.ping({ select: true })).success, true)
    await c.command({ query: 'CREATE TABLE t (a UInt32, s String, r Array(String)) ENGINE = MergeTree ORDER BY a' })
    const values = Array.from({ length: 20000 }, (_, a) => ({ a, s: `ä${a}\t'`, r: ['x', String(a)] }))
    const inserted = await c.insert({ table: 't', values, format: 'JSONEachRow' })
    assert.equal(inserted.summary.written_rows, '20000')
    await c.insert({ table: 't', values: [[20000, 'compact', []]], format: 'JSONCompactEachRow' })
    await c.insert({ table: 't', values: Readable.from(['20001,"csv","[]"\n', '20002,"csv","[]"\n'], { objectMode: false }), format: 'CSV' })
    await c.command({ query: "INSERT INTO t VALUES (20003, 'values; -- ', [])" })
    assert.deepEqual(await rows(c, 'SELECT toUInt32(count()) AS c FROM t'), [{ c: 20004 }])
    const found = await rows(c, 'SELECT * FROM t WHERE a < 20000 ORDER BY a')
    assert.deepEqual(found, values)
    const json = await (await c.query({ query: 'SELECT a FROM t ORDER BY a LIMIT 2', format: 'JSON' })).json()
    assert.deepEqual(json.data, [{ a: 0 }, { a: 1 }])
    const parquet = await c.exec({ query: 'SELECT a FROM t FORMAT Parquet' })
    let bytes = 0
    for await (const chunk of parquet.stream) bytes += chunk.length
    assert.ok(bytes > 1000)
    await c.close()
  },

  async packing() {
    const c = client({ compression: { request: true, response: true } })
    await c.command({ query: 'CREATE TABLE packed (a UInt32) ENGINE = Memory' })
    await c.insert({ table: 'packed', values: Array.from({ length: 50000 }, (_, a) => ({ a })), format: 'JSONEachRow' })
    const answer = await c.query({ query: 'SELECT a FROM packed', format: 'JSONEachRow' })
    assert.equal(answer.response_headers['content-encoding'], 'gzip')
    assert.equal((await answer.json()).length, 50000)
    await c.close()
  },

  async parameters() {
    const c = client()
    const evil = "'; DROP TABLE t; --\\ \n\t{x:String}"
    const found = await rows(c, 'SELECT {v:String} AS v, {l:Array(String)} AS l, {n:Nullable(UInt8)} AS n', {
      query_params: { v: evil, l: ['a', "b'"], n: null },
    })
    assert.deepEqual(found, [{ v: evil, l: ['a', "b'"], n: null }])
    const long = 'y'.repeat(100000)
    assert.deepEqual(await rows(c, 'SELECT {v:String} AS v', { query_params: { v: long }, use_multipart_params: true }), [{ v: long }])
    await c.close()
  },

  async settings() {
    const c = client({ clickhouse_settings: { max_block_size: '1234' } })
    assert.deepEqual(await rows(c, "SELECT toString(getSetting('max_block_size')) AS s"), [{ s: '1234' }])
    await assert.rejects(
      rows(c, 'SELECT number FROM numbers(100)', { clickhouse_settings: { max_result_rows: '5', result_overflow_mode: 'throw' } }),
      (error) => error.code === '396' && error.type === 'TOO_MANY_ROWS_OR_BYTES',
    )
    await assert.rejects(c.command({ query: 'CREATE TABLE x (a Int8) ENGINE = Memory', clickhouse_settings: { readonly: '2' } }), (error) => error.code === '164')
    const session = client({ session_id: 'javascript' })
    await session.command({ query: 'CREATE TEMPORARY TABLE mine (a UInt8)' })
    await session.insert({ table: 'mine', values: [{ a: 1 }, { a: 2 }], format: 'JSONEachRow' })
    assert.deepEqual(await rows(session, 'SELECT toUInt8(sum(a)) AS s FROM mine'), [{ s: 3 }])
    await assert.rejects(rows(c, 'SELECT * FROM mine'), (error) => error.code === '60')
    await session.close()
    await c.close()
  },

  async errors() {
    for (const response of [false, true]) {
      const c = client({ compression: { response } })
      await assert.rejects(rows(c, 'SELECT * FROM nowhere'), (error) => error.code === '60' && error.type === 'UNKNOWN_TABLE')
      await assert.rejects(c.command({ query: 'SELEC 1' }), (error) => error.code === '62')
      await assert.rejects(rows(c, FAILS_LATE, { clickhouse_settings: { wait_end_of_query: 1 } }), (error) => error.code === '395')
      await assert.rejects(async () => {
        const answer = await c.query({ query: FAILS_LATE, format: 'JSONEachRow' })
        for await (const batch of answer.stream()) batch.length
      })
      await assert.rejects(rows(c, FAILS_LATE))
      await c.close()
    }
    const stranger = client({ password: 'wrong' })
    await assert.rejects(rows(stranger, 'SELECT 1'), (error) => error.code === '516')
    assert.equal((await stranger.ping({ select: true })).success, false)
    await stranger.close()
  },

  async streaming() {
    const c = client()
    const before = memory()
    let [count, most] = [0, 0]
    const answer = await c.query({ query: 'SELECT number FROM numbers(3000000)', format: 'JSONCompactEachRow' })
    for await (const batch of answer.stream()) {
      count += batch.length
      most = Math.max(most, memory())
    }
    assert.equal(count, 3000000)
    assert.ok(most < before + (200 << 20), `${(most - before) >> 20} MiB more`)
    await c.close()
  },

  async idsAndConcurrency() {
    const c = client({ max_open_connections: 16 })
    const answer = await c.query({ query: 'SELECT number FROM numbers(1000)', format: 'JSONEachRow', query_id: 'javascript-1', clickhouse_settings: { wait_end_of_query: 1 } })
    assert.equal(answer.query_id, 'javascript-1')
    assert.equal(answer.response_headers['x-clickhouse-query-id'], 'javascript-1')
    assert.equal(JSON.parse(answer.response_headers['x-clickhouse-summary']).result_rows, '1000')
    await answer.text()
    const numbers = Array.from({ length: 32 }, (_, number) => number)
    const asked = numbers.map((number) => rows(c, `SELECT toString(sum(number % 2) + ${number}) AS s FROM numbers(1000000)`))
    assert.deepEqual(await Promise.all(asked), numbers.map((number) => [{ s: String(500000 + number) }]))
    await c.close()
  },

  async cancelled() {
    const c = client({ username: 'reader' })
    const controller = new AbortController()
    const asked = c.query({ query: 'SELECT max(sipHash64(number)) FROM numbers(1000000000000)', abort_signal: controller.signal })
    setTimeout(() => controller.abort(), 500)
    await assert.rejects(asked)
    const running = "SELECT toUInt8(count()) AS c FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%system.processes%'"
    const until = Date.now() + 20000
    while ((await rows(c, running))[0].c !== 0) assert.ok(Date.now() < until, 'the statement of a client that is gone still runs')
    await c.close()
  },
}

for (const [name, work] of Object.entries(works)) {
  await work()
  console.log(name, 'ok')
}
