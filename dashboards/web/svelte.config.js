import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Every component: what the older way needs is not packed then.
    runes: true,
    // Short: a scope of styles has a name on each of its elements.
    cssHash: ({ hash, css }) => `s${hash(css).slice(0, 4)}`,
  },
};
