import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

declare const process: { env: Record<string, string | undefined> };

/** Where `npm run dev` finds a server. */
const server = process.env.UNJANK_SERVER ?? 'http://127.0.0.1:8080';

/** What is no measurement. */
const ADMINISTRATION =
  /src\/(account|config|rules|keys|people|projects|storage|scrubbing|erasures|pages\/(Account|Data|RemoteConfig|Rules|Projects|IngestKeys|DeviceKeys|ApiTokens|People|Audit|AcceptInvitation))\b/;

/** Only loaded when one is looked at. */
const FLAME_GRAPH = /src\/(components\/(FlameGraph|flame_layout)|jank\/(StackFlame|Downloads|flame_changes))\b/;

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // Everything is a file of its own: the policy of the server forbids data: scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Few files: what is alike is packed better together, a fifth less than a file a page. Groups take along what they
    // need, so the base comes first.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'charts', test: /node_modules\/uplot/, priority: 4 },
            {
              name: 'base',
              test: /node_modules|src\/(App|main|api|data|format|layout|navigation)\b|pages\/Login/,
              priority: 3,
            },
            { name: 'administration', test: ADMINISTRATION, priority: 2 },
            { name: 'measurements', test: (id) => /src\//.test(id) && !FLAME_GRAPH.test(id), priority: 1 },
            { name: 'flame-graph', test: FLAME_GRAPH, priority: 0 },
          ],
        },
      },
    },
  },
  // `npm run dev` shows the source and asks a running server.
  server: { proxy: Object.fromEntries(['/api', '/v1', '/openapi.json'].map((path) => [path, server])) },
  test: { include: ['tests/**/*.test.ts'] },
});
