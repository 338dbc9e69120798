// A trace as Markdown: its app and its device, and its longest spans. Pure.

import type { Evidence } from '../evidence/markdown';
import { splitName } from '../format/measures';
import { dateTimeSeconds } from '../format/times';
import { format } from '../format/units';
import { zoneText } from '../format/zone.svelte';
import { addressOf, sessionAddress } from '../navigation/links';
import { kindName } from '../spans/kinds';
import type { StoredSpan } from './queries';
import type { Bar, Waterfall } from './waterfall_layout';

/** The maximum number of spans in the table. */
const SHOWN = 10;

export interface SeenTrace {
  id: string;
  project: string;
  of: Waterfall<StoredSpan>;
  root: StoredSpan;
  /** Whether the trace has further spans, which were not loaded. */
  more: boolean;
}

export function traceEvidence({ id, project, of, root, more }: SeenTrace): Evidence {
  const start = new Date(root.start);
  const range = { kind: 'absolute', from: start, to: new Date(start.getTime() + of.durationUs / 1000 + 1000) } as const;
  const filters = { project, range, chosen: {}, baseVersion: '' };
  const main = of.lanes.find((lane) => lane.isMain);
  const failed = of.bars.filter(({ span }) => span.status === 'error').length;
  const row = ({ span, start: at, selfUs }: Bar<StoredSpan>) => [
    splitName(span.name).short,
    kindName(span.kind),
    format(at, 'us'),
    format(span.duration_us, 'us'),
    format(selfUs, 'us'),
    span.on_main_thread ? `${span.thread} (main thread)` : span.thread,
    span.status === 'error' ? 'failed' : '',
  ];
  return {
    title: `Trace ${splitName(root.name).short}`,
    about: more ? ['The trace has too many spans. Only the earliest ones are counted here.'] : [],
    facts: [
      ['Start', `${dateTimeSeconds(start)} (${zoneText(start)})`],
      ['Duration', format(of.durationUs, 'us')],
      ['Main thread with open spans', main && format(main.busyUs / of.durationUs, 'share')],
      ['Spans', format(of.bars.length)],
      ['Failed spans', failed > 0 ? format(failed) : ''],
      ['App', [root.app_id, root.app_version].filter(Boolean).join(' ')],
      ['Device', [root.device_model, root.os_name].filter(Boolean).join(', ')],
      ['Page', root.page],
    ],
    table: {
      head: ['Longest spans', 'Kind', 'Begins after', 'Duration', 'Without inner spans', 'Thread', 'Status'],
      rows: of.bars
        .toSorted((a, b) => b.span.duration_us - a.span.duration_us)
        .slice(0, SHOWN)
        .map(row),
    },
    links: [
      { label: 'Trace', path: addressOf(`/traces/${encodeURIComponent(id)}`, filters) },
      { label: 'Session', path: sessionAddress(filters, root.session_id, root.start, root.span_id) },
    ],
  };
}
