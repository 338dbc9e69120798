// Copies a text, and shows whether this succeeded.

import { say } from './toast.svelte';

export async function copy(text: string, done = 'Copied.') {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say('The browser blocked copying. Select the text and copy it.', 'bad');
  }
}
