import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

declare const process: { env: Record<string, string | undefined> };

/** Where `npm run dev` finds a server. */
const server = process.env.UNJANK_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // Everything is a file of its own: the policy of the server forbids data: scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // `npm run dev` shows the source and asks a running server.
  server: { proxy: Object.fromEntries(['/api', '/v1', '/openapi.json'].map((path) => [path, server])) },
  test: { include: ['tests/**/*.test.ts'] },
});
