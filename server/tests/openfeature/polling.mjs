// Tests when OpenFeature's JavaScript client notices that a flag has changed: it asks again only if it is told to.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(`${process.env.CLIENT_MODULES}/`)
const { OpenFeature } = require('@openfeature/web-sdk')
const { OFREPWebProvider } = require('@openfeature/ofrep-web-provider')

const headers = [['Authorization', `Bearer ${process.env.SERVER_KEY}`]]
const context = { targetingKey: process.env.CANARY, app_id: 'com.example.shop' }
const connect = async (name, more) => {
  const provider = new OFREPWebProvider({ baseUrl: process.env.SERVER_URL, headers, cacheMode: 'disabled', ...more })
  await OpenFeature.setProviderAndWait(name, provider, context)
  return () => OpenFeature.getClient(name).getStringValue('checkout button', 'none')
}

const polling = await connect('polling', { pollInterval: 100 })
const usual = await connect('usual', {})
const first = polling()
assert.equal(usual(), first)
console.log('ready')
const line = await new Promise((resolve) => createInterface({ input: process.stdin }).once('line', resolve))
while (polling() === first) await new Promise((resolve) => setTimeout(resolve, 20))
assert.equal(polling(), line)
assert.equal(usual(), first)
console.log('done')
await OpenFeature.close()
process.exit(0)
