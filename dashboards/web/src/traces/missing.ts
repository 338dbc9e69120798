// Possible reasons for a missing trace. Pure.

/** A trace id as devices send it: 32 hex digits. */
const TRACE_ID = /^[0-9a-f]{32}$/i;

export function whyMissing(id: string, project: string): string[] {
  const digits = id.replace(/[^0-9a-f]/gi, '').length;
  const typing = TRACE_ID.test(id)
    ? 'The id was typed or copied wrongly.'
    : `The id is not complete: a trace id has 32 hex digits, and this one has ${digits}.`;
  return [
    typing,
    'The trace is older than the retention period of events, which the page Data shows.',
    'The device did not send the trace: devices record only a sample of traces, and send them when they have a network.',
    `The trace belongs to a project other than ${project || 'the chosen one'}. The filters of other pages have no effect here.`,
  ];
}
