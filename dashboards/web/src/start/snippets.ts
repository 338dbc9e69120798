// The snippets that send the first data. Tests run the commands and send the batch of the Kotlin program (`e2e/walks/entrance.mjs`), and
// run the Rust program (a test of the SDK).

import batch from './first_batch.sh?raw';
import kotlin from './first_data.kt?raw';
import program from './first_data.rs?raw';
import trace from './first_trace.sh?raw';
import environment from './open_telemetry.env?raw';

/** The placeholder for a key that the user has not entered yet. */
export const NO_KEY = 'YOUR_INGEST_KEY';

export const curlCommand = (server: string, key: string) => filled(batch, server, key);
export const otlpCommand = (server: string, key: string) => filled(trace, server, key);
export const otlpEnvironment = (server: string, key: string) => filled(environment, server, key);
export const kotlinProgram = (server: string, key: string) => filled(kotlin, server, key);
export const rustProgram = (server: string, key: string) =>
  `fn main() ${filled(program, JSON.stringify(server), JSON.stringify(key || NO_KEY))}`;

/** Replaces the first SERVER and the first KEY of a snippet. */
function filled(snippet: string, server: string, key: string): string {
  return snippet
    .trimEnd()
    .replace(/\bSERVER\b/, () => server)
    .replace(/\bKEY\b/, () => key || NO_KEY);
}

/** Whether a text is safe to insert into a shell command or a program as an ingest key. */
export function isKey(text: string): boolean {
  return /^[\w.~+/=-]{1,512}$/.test(text);
}
