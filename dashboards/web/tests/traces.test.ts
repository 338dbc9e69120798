import { describe, expect, test } from 'vitest';
import { sessionAddress } from '../src/navigation/links';
import { whyMissing } from '../src/traces/missing';
import { PERFETTO, handOver, type Viewer } from '../src/traces/perfetto';

/** A tab that ignores the given number of `PING`s before it replies. */
function tab(answersAfter: number, host: EventTarget) {
  const posted: unknown[] = [];
  const viewer = {
    closed: false,
    close: () => (viewer.closed = true),
    postMessage(message: unknown, origin: string) {
      expect(origin).toBe(PERFETTO);
      posted.push(message);
      if (message === 'PING' && posted.length > answersAfter) say(viewer, PERFETTO, 'PONG');
    },
  };
  function say(source: unknown, origin: string, data: unknown) {
    host.dispatchEvent(Object.assign(new Event('message'), { source, origin, data }));
  }
  return { viewer: viewer as Viewer & { closed: boolean }, posted, say };
}
const file = { buffer: new ArrayBuffer(8), title: 'checkout', fileName: 'a.trace.json' };

describe('a trace is handed over to Perfetto', () => {
  test('once its tab has answered, and only once', async () => {
    const host = new EventTarget();
    const { viewer, posted } = tab(2, host);
    await handOver(viewer, host, file);
    expect(posted).toEqual(['PING', 'PING', 'PING', { perfetto: file }]);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(posted.length).toBe(4);
  });

  test('but not to another page that replies in its place', async () => {
    const host = new EventTarget();
    const { viewer, posted, say } = tab(100, host);
    const handed = handOver(viewer, host, file, 300);
    say(viewer, 'https://evil.example', 'PONG');
    say({}, PERFETTO, 'PONG');
    await expect(handed).rejects.toThrow('did not respond');
    expect(posted.every((message) => message === 'PING')).toBe(true);
  });

  test('unless its tab is closed', async () => {
    const host = new EventTarget();
    const { viewer } = tab(100, host);
    viewer.close();
    await expect(handOver(viewer, host, file)).rejects.toThrow('was closed');
  });
});

describe('a missing trace', () => {
  test('may have an id that is too short', () => {
    expect(whyMissing('abc', 'shop')[0]).toContain('32 hex digits, and this one has 3');
    expect(whyMissing('0123456789abcdef0123456789abcdef', 'shop')[0]).toContain('typed or copied wrongly');
    expect(whyMissing('abc', 'shop').at(-1)).toContain('a project other than shop');
  });
});

test('a session has an address with the filters', () => {
  const filters = { project: 'shop', range: { kind: 'relative', text: '24h' } as const, chosen: {}, baseVersion: '' };
  expect(sessionAddress(filters, 'a/b')).toBe('/sessions/a%2Fb?project=shop&range=24h');
});
