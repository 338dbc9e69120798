import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [svelte()],
  build: { outDir: '../../.generated/gallery', emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});
