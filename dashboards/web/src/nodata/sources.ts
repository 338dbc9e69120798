// How an app sends each signal: its name, the calls of the SDK, and the documentation. A test of the SDK runs the calls.

import type { Signal } from '../api/query';
import calls from './calls.rs?raw';

export interface Source {
  /** The name of the data in texts such as "No spans in this period". */
  noun: string;
  /** One sentence about the source of the signal. */
  about: string;
  /** The calls of the Rust SDK. Empty if no call sends the signal. */
  snippet: string;
  docs: string;
}

const SDK = 'docs/sdk.md, “What to call”';

const ABOUT: Partial<Record<Signal, [noun: string, about: string, docs?: string]>> = {
  spans: ['spans', 'The SDK sends a span for each piece of code that you mark.'],
  janks: [
    'janks',
    'The SDK reports a jank when messages block the main loop beyond a threshold of the remote config: by default once for 2 s, or five times in a minute for 300 ms.',
  ],
  frame_windows: ['frames', 'The SDK counts the frames that the app reports.'],
  page_loads: ['page loads', 'The SDK times a page from its start to its final draw.'],
  page_requests: [
    'page requests',
    'The SDK times the requests that the remote config lists for a page under “pages”.',
    'docs/remote-config.md',
  ],
  requests: [
    'request spans',
    'Spans with the attributes server.address and url.path, or with a name such as “GET /cart”, describe requests.',
    'docs/screens.md, “From much traffic to its cause”',
  ],
  traffic: [
    'traffic',
    'The SDK sums the bytes of requests by day, and sends the sums with a later batch. For reqwest and tower, unjank::http::TraceLayer counts the bytes.',
  ],
  metrics: ['metrics', 'Monitors sample metrics (FPS, CPU and memory), and the app can send metrics of its own.'],
  app_starts: ['app starts', 'The SDK measures a start between two calls of the app.'],
  start_phases: ['app start phases', 'The SDK times the phases that the app names.'],
  recompositions: ['recompositions', 'The SDK counts the redraws that the app reports, by function and cause.'],
  usage: ['data', 'Each upload of an app is a batch.', 'docs/sdk.md'],
  outcomes: ['events', 'The server counts the outcome of each event.', 'docs/operations.md'],
  sdk_health: [
    'SDK reports',
    'The Rust SDK reports its own cost with its batches. Other clients do not.',
    'docs/sdk.md',
  ],
  sdk_drops: ['dropped events', 'The SDK reports the events that it had to drop.', 'docs/sdk.md'],
};

export function sourceOf(signal: Signal): Source {
  const [noun, about, docs = SDK] = ABOUT[signal] ?? [signal.replaceAll('_', ' '), ''];
  return { noun, about, docs, snippet: SNIPPETS.get(signal) ?? '' };
}

/** The lines below `// <signal>`, up to the next such line. */
const SNIPPETS = new Map(
  calls
    .split(/^ {4}\/\/ (?=\w+$)/m)
    .slice(1)
    .map((part): [string, string] => {
      const [signal = '', ...lines] = part.split('\n');
      return [
        signal,
        lines
          .map((line) => line.replace(/^ {4}/, ''))
          .join('\n')
          .trimEnd(),
      ];
    }),
);
