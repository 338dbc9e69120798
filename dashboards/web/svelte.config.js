import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Every component: what the older way needs is not packed then.
    runes: true,
    // No page needs to know the version of Svelte.
    discloseVersion: false,
    // Short: a scope of styles has a name on each of its elements.
    cssHash: ({ hash, css }) => `s${hash(css).slice(0, 4)}`,
  },
};
