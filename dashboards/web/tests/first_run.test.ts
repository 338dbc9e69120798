import { expect, test } from 'vitest';
import { hasOpenLink, personState } from '../src/people/person_state';
import { complaints, pagesWithData, refusalText } from '../src/start/arrived';
import {
  NO_KEY,
  curlCommand,
  isKey,
  kotlinProgram,
  otlpCommand,
  otlpEnvironment,
  rustProgram,
} from '../src/start/snippets';

const NOW = Date.UTC(2026, 10, 23);
const DAY = 86_400_000_000;
const SERVER = 'https://unjank.example.com';

test('the snippets have the address and the key of the reader, and nothing to replace', () => {
  const command = curlCommand(SERVER, 'ujk_$&key');
  expect(command).toContain(`${SERVER}/v1/ingest`);
  expect(command).toContain('Bearer ujk_$&key');
  const program = rustProgram(SERVER, 'ujk_key');
  expect(program).toMatch(/^fn main\(\) \{\n/);
  expect(program).toContain(`Config::new("${SERVER}", "ujk_key")`);
  const kotlin = kotlinProgram(SERVER, 'ujk_key');
  expect(kotlin).toContain(`URI("${SERVER}/v1/ingest")`);
  const otlp = otlpCommand(SERVER, 'ujk_key');
  expect(otlp).toContain(`${SERVER}/v1/traces`);
  const variables = otlpEnvironment(SERVER, 'ujk_key');
  expect(variables).toContain(`OTEL_EXPORTER_OTLP_ENDPOINT=${SERVER}\n`);
  for (const text of [kotlin, otlp, variables]) expect(text).toContain('Bearer ujk_key');
  for (const text of [otlp, variables]) expect(text).toContain('app.installation.id');
  for (const text of [command, program, kotlin, otlp, variables]) expect(text).not.toMatch(/SERVER|KEY/);
  for (const make of [curlCommand, rustProgram, kotlinProgram, otlpCommand, otlpEnvironment])
    expect(make(SERVER, '')).toContain(NO_KEY);
});

test('the Kotlin program writes valid JSON', () => {
  const text = /\"\"\"([^]*?)\"\"\"/.exec(kotlinProgram(SERVER, 'ujk_key'))![1]!;
  // The templates of Kotlin: expressions in braces, and names.
  const filled = text
    .replace(/\$\{[^}]*\}/g, 'id')
    .replace('$start', '2026-11-23T00:00:00Z')
    .replace('$durationUs', '40000');
  expect(JSON.parse(filled)).toMatchObject({ batch_id: 'id', spans: [{ name: 'checkout', duration_us: 40_000 }] });
});

test('a text that would end a quotation is not a key', () => {
  expect(isKey('ujk_aZ09-_')).toBe(true);
  for (const text of ['', "a' b", 'a"b', 'a b', 'a\nb', '$(id)', '`id`']) expect(isKey(text)).toBe(false);
});

test('only pages with stored events are offered', () => {
  const loss = (outcome: string, signal: string) => ({ outcome, signal, reason: '', count: 1 });
  expect(pagesWithData([loss('rejected', 'spans')])).toEqual([]);
  const titles = pagesWithData([loss('stored', 'spans'), loss('rejected', 'janks')]).map((page) => page.title);
  expect(titles).toEqual(['Overview', 'Spans', 'Traces', 'Ingest health']);
  expect(complaints([loss('stored', 'spans'), loss('rejected', 'janks')])).toHaveLength(1);
});

test('each rejection of a key names the cause and the next step', () => {
  const text = (code: string, prefix: string, own?: string) => refusalText({ code, prefix, own, requests: 1 });
  expect(text('key_unknown', 'ujt_abcd…')).toContain('API token');
  expect(text('key_unknown', 'ujk_abcd…')).toContain('begins with “ujk_abcd…”');
  expect(text('key_unknown', 'ujk_abcd…', 'Android')).toContain('“Android” was refused: the key is revoked or expired');
  expect(text('key_missing', '')).toContain('Authorization: Bearer');
  expect(refusalText({ code: 'key_missing', prefix: '', requests: 3 })).toContain('3 requests without a key were');
});

const person = { disabled_at: null, has_password: false, has_identity: false, is_admin: false };

test('the state of a person names the open invitation and when it expires', () => {
  const state = (invitation_expires_at: number | null, more = {}) =>
    personState({ ...person, invitation_expires_at, ...more }, NOW);
  const [soon, past] = [NOW * 1000 + 5 * DAY, NOW * 1000 - 2 * DAY];
  expect(state(soon).text).toBe('invited, expires in 5 days');
  expect(state(past).text).toBe('invitation expired 2 days ago');
  expect(state(null).text).toBe('no invitation');
  expect(state(soon, { has_password: true })).toEqual({
    text: 'active',
    kind: 'good',
    note: 'password link expires in 5 days',
  });
  expect(state(past, { has_identity: true })).toEqual({ text: 'active', kind: 'good' });
  expect(state(soon, { disabled_at: 1 }).text).toBe('disabled');
  expect(hasOpenLink({ ...person, invitation_expires_at: past }, NOW)).toBe(false);
});
