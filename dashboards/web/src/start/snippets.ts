// The snippets that send the first data. Tests run both: `e2e/walks/entrance.mjs` the command, and a test of the SDK the program.

import batch from './first_batch.sh?raw';
import program from './first_data.rs?raw';

/** The placeholder for a key that the user has not entered yet. */
export const NO_KEY = 'YOUR_INGEST_KEY';

export function curlCommand(server: string, key: string): string {
  return batch
    .trimEnd()
    .replace('SERVER', () => server)
    .replace('KEY', () => key || NO_KEY);
}

export function rustProgram(server: string, key: string): string {
  const filled = program
    .trimEnd()
    .replace('SERVER', () => JSON.stringify(server))
    .replace('KEY', () => JSON.stringify(key || NO_KEY));
  return `fn main() ${filled}`;
}

/** Whether a text is safe to insert into a shell command as an ingest key. */
export function isKey(text: string): boolean {
  return /^[\w.~+/=-]{1,512}$/.test(text);
}
