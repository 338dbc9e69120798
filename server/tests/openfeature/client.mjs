// Tests OpenFeature's JavaScript client for devices, which loads all flags at once and caches them.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.CLIENT_MODULES}/`)
const { OpenFeature, ProviderStatus } = require('@openfeature/web-sdk')
const { OFREPWebProvider } = require('@openfeature/ofrep-web-provider')

// The responses that the client received.
const answers = []
const fetched = globalThis.fetch
globalThis.fetch = async (request, options) => {
  const sent = request.headers.get('if-none-match')
  const response = await fetched(request, options)
  answers.push({ status: response.status, sent, etag: response.headers.get('etag') })
  return response
}

const provider = (headers, more = {}) =>
  new OFREPWebProvider({ baseUrl: process.env.SERVER_URL, headers, pollInterval: 0, cacheMode: 'disabled', ...more })
const bearer = [['Authorization', `Bearer ${process.env.SERVER_KEY}`]]
const apiKey = [['X-API-Key', process.env.SERVER_KEY]]
const canary = { targetingKey: process.env.CANARY, app_id: 'com.example.shop', osName: 'android', appVersion: '4.12.0', build: 41200 }

const works = {
  async everyTypeOfFlag() {
    for (const [name, headers] of Object.entries({ bearer, apiKey })) {
      await OpenFeature.setProviderAndWait(name, provider(headers), canary)
      const client = OpenFeature.getClient(name)
      assert.equal(client.providerStatus, ProviderStatus.READY)
      assert.equal(client.getBooleanValue('tracing.enabled', false), true)
      assert.equal(client.getNumberValue('sampling.janks', 0), 0.25)
      assert.equal(client.getNumberValue('poll_interval_s', 0), 300)
      assert.equal(client.getStringValue('checkout button', 'none'), 'green')
      assert.deepEqual(client.getObjectValue('sampling.spans', {}), { default: 0.5, overrides: [{ name: 'app.start', rate: 1 }] })
      assert.deepEqual(client.getObjectValue('tracing.allow', []), ['^com\\.example\\.'])
      assert.deepEqual(client.getObjectValue('limits', {}), { cart: 20, tags: ['a', 'b'] })
    }
  },

  async whyAFlagIsWhatItIs() {
    const details = OpenFeature.getClient('bearer').getBooleanDetails('tracing.enabled', false)
    assert.equal(details.reason, 'SPLIT')
    assert.equal(details.variant, 'android+canary')
    assert.deepEqual(details.flagMetadata, { revision: 1 })
    assert.equal(details.errorCode, undefined)
  },

  async anotherDevice() {
    await OpenFeature.setContext('bearer', { targetingKey: process.env.OTHER, osName: 'ios' })
    const client = OpenFeature.getClient('bearer')
    const details = client.getStringDetails('checkout button', 'none')
    assert.deepEqual([details.value, details.reason, details.variant], ['blue', 'STATIC', 'base'])
    assert.equal(client.getBooleanValue('tracing.enabled', true), false)
  },

  async nothingNew() {
    const client = OpenFeature.getClient('bearer')
    const before = client.getObjectValue('sampling', {})
    await OpenFeature.setContext('bearer', { targetingKey: process.env.OTHER, osName: 'ios', another: 'member' })
    const [first, second] = answers.slice(-2)
    assert.deepEqual([second.status, second.sent], [304, first.etag])
    assert.match(first.etag, /^"[0-9a-f]{32}"$/)
    assert.deepEqual(client.getObjectValue('sampling', {}), before)
  },

  async errors() {
    const client = OpenFeature.getClient('bearer')
    const unknown = client.getBooleanDetails('no such flag', true)
    assert.deepEqual([unknown.value, unknown.errorCode], [true, 'FLAG_NOT_FOUND'])
    const mistyped = client.getBooleanDetails('sampling.janks', true)
    assert.deepEqual([mistyped.value, mistyped.errorCode], [true, 'TYPE_MISMATCH'])
    await assert.rejects(OpenFeature.setProviderAndWait('nameless', provider(bearer), { osName: 'android' }), /400/)
    const because = (reason) => (error) => reason.test(error.cause?.message)
    await assert.rejects(OpenFeature.setProviderAndWait('stranger', provider([['X-API-Key', 'wrong']]), canary), because(/unauthorized/))
    const other = { ...canary, app_id: 'com.example.other' }
    await assert.rejects(OpenFeature.setProviderAndWait('other', provider(bearer), other), because(/forbidden/))
    assert.deepEqual(answers.slice(-3).map((answer) => answer.status), [400, 401, 403])
  },
}

for (const [name, work] of Object.entries(works)) {
  await work()
  console.log(name, 'ok')
}
await OpenFeature.close()
