// The client of the Model Context Protocol starts `unjank mcp` and calls its tools, as an assistant does.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(`${process.env.CLIENT_MODULES}/`)
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')

const PERIOD = { from: '2026-11-20T00:00:00Z', to: '2026-11-21T00:00:00Z' }

async function connected(token, url = process.env.UNJANK_URL) {
  const client = new Client({ name: 'test', version: '1' })
  const env = { ...process.env, UNJANK_URL: url, UNJANK_TOKEN: token }
  await client.connect(new StdioClientTransport({ command: process.env.UNJANK, args: ['mcp'], env }))
  return client
}

/** Calls a tool that must succeed. Returns its result. */
async function answer(client, name, args) {
  const { content, isError } = await client.callTool({ name, arguments: args })
  assert.equal(isError ?? false, false, content[0].text)
  return JSON.parse(content[0].text)
}

/** Calls a tool that must fail. Returns the text of the error. */
async function failure(client, name, args) {
  const { content, isError } = await client.callTool({ name, arguments: args })
  assert.equal(isError, true, content[0].text)
  return content[0].text
}

/** Calls a tool with arguments as they are written: JavaScript writes 5.0 as 5. */
async function resultOf(name, args) {
  const child = spawn(process.env.UNJANK, ['mcp'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const clientInfo = { name: 'test', version: '1' }
  const params = JSON.stringify({ protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  for (const call of [
    `"id":1,"method":"initialize","params":${params}`,
    '"method":"notifications/initialized"',
    `"id":2,"method":"tools/call","params":{"name":"${name}","arguments":${args}}`,
  ]) {
    child.stdin.write(`{"jsonrpc":"2.0",${call}}\n`)
  }
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result } = JSON.parse(line)
      if (id === 2) return result
    }
    throw new Error(`no answer of ${name}`)
  } finally {
    child.kill()
  }
}

const client = await connected(process.env.UNJANK_TOKEN)

const checks = {
  async allToolsOnlyRead() {
    const { tools } = await client.listTools()
    assert.ok(tools.length >= 15)
    for (const { name, description, annotations, inputSchema } of tools) {
      assert.equal(annotations.readOnlyHint, true, name)
      assert.ok(description.length > 10, name)
      assert.equal(inputSchema.additionalProperties, false, name)
      assert.ok(JSON.stringify(inputSchema).length < 5_000, `${name} is too long for an assistant`)
    }
    assert.match(client.getInstructions(), /Call `signals` first/)
    assert.match(client.getInstructions(), /`compare=same_age`/)
    assert.equal(client.getServerVersion().name, 'unjank')
  },

  async signalsAreListed() {
    const { signals } = await answer(client, 'signals', {})
    assert.ok(signals.includes('spans') && signals.includes('janks'))
    const spans = await answer(client, 'signals', { signal: 'spans' })
    assert.ok(spans.dimensions.includes('app_version'))
    assert.deepEqual(
      spans.measures.find(({ name }) => name === 'p95_us'),
      { name: 'p95_us', unit: 'us', better: 'lower' },
    )
    assert.match(await failure(client, 'signals', { signal: 'nothing' }), /there is no signal "nothing"/)
  },

  async aQueryIsAnswered() {
    const question = { signal: 'spans', by: ['name'], measure: ['count', 'p50_us'], order: '-count', limit: 5, ...PERIOD }
    const { rows } = await answer(client, 'query', question)
    assert.deepEqual(rows.map(({ keys, values }) => [keys[0], values[0]]), [['many', 900], ['checkout', 3]])
    const none = await answer(client, 'query', { ...question, filters: { app_version: ['4.11.0', '4.13.0'] } })
    assert.deepEqual(none.rows, [])
    const some = await answer(client, 'query', { ...question, filters: { app_version: '4.12.0' }, contains: { name: 'CHECK' } })
    assert.equal(some.rows.length, 1)
    const { series } = await answer(client, 'series', { signal: 'spans', by: ['name'], measure: ['count'], ...PERIOD })
    assert.equal(series.length, 2)
  },

  async aWholeNumberMayHaveAFraction() {
    const period = JSON.stringify(PERIOD).slice(1)
    for (const limit of ['5.0', '5e0']) {
      const { content, isError } = await resultOf('query', `{"signal":"spans","measure":["count"],"limit":${limit},${period}`)
      assert.equal(isError ?? false, false, content[0].text)
    }
    const { isError } = await resultOf('query', `{"signal":"spans","measure":["count"],"limit":5.5,${period}`)
    assert.equal(isError, true)
  },

  async aTraceIsFound() {
    const found = await answer(client, 'traces', { filters: { name: ['checkout'] }, ...PERIOD })
    const { spans } = await answer(client, 'trace', { trace: found.spans[0].trace_id })
    assert.equal(spans[0].name, 'checkout')
  },

  async mistakesAreExplained() {
    assert.match(await failure(client, 'query', { signal: 'spans', app_version: '4.12.0' }), /Dimensions go into `filters`/)
    assert.match(await failure(client, 'query', {}), /`signal` is required/)
    assert.match(await failure(client, 'query', { signal: 'spans', filters: { nothing: ['x'] } }), /not a dimension/)
    assert.match(await failure(client, 'query', { signal: 'spans', measure: ['p12'] }), /p12/)
    assert.match(await failure(client, 'erase', {}), /there is no tool `erase`/)
    for (const signal of ['..', '../../keys', 'spans/../../../keys', 'spans?limit=1', '%2e%2e']) {
      await failure(client, 'query', { signal })
    }
  },

  async tooMuchIsRefused() {
    assert.match(await failure(client, 'traces', { limit: 1_000, filters: { name: ['many'] }, ...PERIOD }), /use a lower `limit`/)
    const { spans } = await answer(client, 'traces', { limit: 10, filters: { name: ['many'] }, ...PERIOD })
    assert.equal(spans.length, 10)
  },

  async manyCallsAtOnceAreAnswered() {
    const question = { signal: 'spans', measure: ['count'], ...PERIOD }
    const answers = await Promise.all(Array.from({ length: 40 }, () => answer(client, 'query', question)))
    assert.equal(answers.length, 40)
  },

  async theTokenDecides() {
    const stranger = await connected(process.env.OTHER_TOKEN)
    assert.match(await failure(stranger, 'query', { signal: 'spans' }), /project|access|role/)
    await stranger.close()
  },

  async aServerThatIsGoneIsNamed() {
    const lost = await connected(process.env.UNJANK_TOKEN, 'http://127.0.0.1:1')
    assert.match(await failure(lost, 'query', { signal: 'spans' }), /127\.0\.0\.1:1/)
    await lost.close()
  },
}

for (const [name, check] of Object.entries(checks)) {
  await check().catch((error) => {
    console.log(`${name}: ${error.stack}`)
    process.exitCode = 1
  })
}
await client.close()
