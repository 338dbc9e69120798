#!/bin/sh
# What: OpenFeature's provider for browsers asks for flags once. If that first request fails (here: 429 with `Retry-After: 1`), it never
#       asks again, although `pollInterval` is set and the server would answer.
# Expected: with `pollInterval`, it asks again after the interval, or after `Retry-After`.
# Seen with: @openfeature/ofrep-web-provider 0.4.3, @openfeature/web-sdk 1.10.0, node 20. Two runs:
#   first request 429 : 1 request in 3 s with pollInterval 200
#   first request 200 : more than 10 requests in 3 s with pollInterval 200
#   no pollInterval   : 1 request in 3 s (version 0.3.3 asked every 30 s by default)
# For users: call `setProviderAndWait` again when it throws, and set `pollInterval`.
# Needs: node, npm. Fails if the behaviour changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @openfeature/ofrep-web-provider@0.4.3 @openfeature/web-sdk@1.10.0 @openfeature/core@1.12.0 >/dev/null
cat > try.cjs <<'JS'
const http = require('node:http')
const { OpenFeature } = require('@openfeature/web-sdk')
const { OFREPWebProvider } = require('@openfeature/ofrep-web-provider')
async function requests(first, options) {
  let count = 0
  const server = http.createServer((request, response) => {
    request.resume()
    count += 1
    if (count === 1 && first === 429) return response.writeHead(429, { 'retry-after': '1' }).end()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ flags: [{ key: 'color', value: 'red', reason: 'STATIC' }] }))
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  const baseUrl = `http://127.0.0.1:${server.address().port}`
  const provider = new OFREPWebProvider({ baseUrl, cacheMode: 'disabled', ...options })
  const name = `${first}-${options.pollInterval}`
  await OpenFeature.setProviderAndWait(name, provider, { targetingKey: 'one' }).catch(() => {})
  await new Promise((done) => setTimeout(done, 3000))
  server.closeAllConnections()
  server.close()
  return count
}
async function main() {
  const counts = {
    refused: await requests(429, { pollInterval: 200 }),
    answered: await requests(200, { pollInterval: 200 }),
    unset: await requests(200, {}),
  }
  console.log(counts)
  process.exit(counts.refused === 1 && counts.answered > 10 && counts.unset === 1 ? 0 : 1)
}
main()
JS
node try.cjs
