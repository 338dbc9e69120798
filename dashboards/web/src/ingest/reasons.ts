// Why events were not stored, in words, and what to do about it. The codes are those of the protocol and of the SDK. Pure.

export interface Reason {
  means: string;
  todo: string;
}

const CLOCK = 'Check the clock of the devices, and how long they keep events before they send them.';
const BODY = 'Something between device and server changes or cuts bodies: a proxy, or a client of your own.';
const KEY =
  'Compare the key in the app with those under Ingest keys: it may be revoked, mistyped or of another project.';
const SIZE = 'Lower upload.max_batch_events under Remote config; the SDK splits such a batch by itself.';

/** By outcome and code; a code alone where it means the same everywhere. */
const REASONS: Record<string, Reason> = {
  'stored/': { means: 'Accepted and stored.', todo: 'Nothing.' },
  'duplicate/': { means: 'The same events came before; they are stored once.', todo: 'Nothing.' },
  'duplicate/batch': {
    means: 'A whole batch came a second time: the device had no answer to the first. It is stored once.',
    todo: 'Nothing, unless there are many: then look at the network and at the time-outs of a proxy before unjank.',
  },
  'dead_letter/': {
    means: 'Accepted, but the store refused them. They are kept aside, not lost.',
    todo: 'On the server: `unjank dead-letter list` says why; `retry` stores them once the cause is gone.',
  },
  'scrubbed/': {
    means: 'Stored without personal data or secrets that were in a text. Counted by texts.',
    todo: 'Stop sending them: look for names and attributes with [email], [secret] and the like.',
  },
  'scrubbed/own_rule': {
    means: 'Stored after a rule of the project replaced parts of a text. Counted by texts.',
    todo: 'Nothing, when that is meant. The rules are under Data, Scrubbing.',
  },
  'erased/': {
    means: 'Stored at first, then erased on request.',
    todo: 'Nothing. The receipts are under Data, Erasure.',
  },
  'limited/': {
    means: 'Stored under the name “(other)”: more different ones came in an hour than the server keeps.',
    todo: 'Filter by “(other)” and group by version: names with ids in them cause this.',
  },
  time_out_of_range: { means: 'Too old or too far ahead, after the clock was corrected.', todo: CLOCK },
  duration_out_of_range: {
    means: 'A duration below zero or over a day.',
    todo: 'A start was measured with another clock than the end, or a span was never ended. Look where it is made.',
  },
  sample_rate_out_of_range: {
    means: 'A sample rate that is not above 0 and at most 1.',
    todo: 'Correct the rate in the code that sends it.',
  },
  value_not_finite: {
    means: 'A metric that is no number.',
    todo: 'Look for a division by zero in the monitor that sends it.',
  },
  count_out_of_range: { means: 'A metric that stands for no sample.', todo: 'Do not send sums of nothing.' },
  name_missing: { means: 'An event without its name.', todo: 'Give the span, metric or page a name where it is made.' },
  no_list: { means: 'A signal that is not a list.', todo: 'Only clients of your own do this: see the protocol.' },
  invalid_event: {
    means: 'An event that does not follow the protocol.',
    todo: 'Update the SDK, or correct your own client.',
  },
  'rejected/rate_limited': {
    means: 'The project was over its quota for the signal, and devices were asked to wait.',
    todo: 'Raise the quota of the ingest key, or lower the sampling of the signal under Remote config.',
  },
  quota_disk: {
    means: 'The project’s data takes more disk space than its quota.',
    todo: 'Raise the quota under Data, or lower the sampling under Remote config. Devices keep their events and try again.',
  },
  body_truncated: { means: 'A body that ended too early.', todo: BODY },
  corrupt_encoding: { means: 'A body that could not be unpacked.', todo: BODY },
  invalid_json: { means: 'A body that is no JSON.', todo: BODY },
  invalid_utf8: { means: 'A body that is no text.', todo: BODY },
  invalid_envelope: {
    means: 'A batch that does not follow the protocol.',
    todo: 'Update the SDK, or correct your own client.',
  },
  invalid_resource: {
    means: 'A batch that does not say which app, version or install it is from.',
    todo: 'Set app id, version and install when the SDK is started.',
  },
  key_missing: { means: 'A batch without a key.', todo: KEY },
  key_unknown: { means: 'A batch with an unknown key.', todo: KEY },
  key_not_for_app: {
    means: 'A key that is for another app.',
    todo: 'Make a key for this app, or one for all, under Ingest keys.',
  },
  token_expired: {
    means: 'A device token that is over.',
    todo: 'Devices ask for a new one by themselves; look at their clocks if it stays.',
  },
  token_invalid: { means: 'A device token that is not signed by a known key.', todo: 'See Device keys.' },
  token_not_for_install: { means: 'A device token of another install.', todo: 'Devices must not share tokens.' },
  device_token_required: {
    means: 'The app must send device tokens, and this one sent a key.',
    todo: 'Update the app, or allow keys again under Device keys.',
  },
  body_stalled: {
    means: 'A body that did not arrive in time.',
    todo: 'Nothing for some: slow networks. Devices try again.',
  },
  body_too_large: { means: 'A batch over the size limit.', todo: SIZE },
  decompressed_too_large: { means: 'A batch over the size limit once unpacked.', todo: SIZE },
  record_too_large: { means: 'A batch over the size of a record.', todo: SIZE },
  too_many_events: { means: 'A batch with too many events.', todo: SIZE },
  content_encoding: { means: 'A compression that the server does not know.', todo: 'Send identity, gzip or zstd.' },
  content_type: { means: 'A body that is not said to be JSON.', todo: 'Send Content-Type: application/json.' },
  'device/queue_full': {
    means: 'More events at once than the queue in memory holds.',
    todo: 'Lower the sampling of the signal under Remote config, or name fewer methods to trace.',
  },
  'device/rate_limited': {
    means: 'The device’s own budget for the signal was used up, or the server asked to hold it back.',
    todo: 'Lower its sampling under Remote config; when the server asked, see “rejected” and the quota of the key.',
  },
  'device/disk_full': {
    means: 'The space for waiting events was used up while the device could not send: the oldest went.',
    todo: 'Raise upload.max_queue_bytes under Remote config, or find out why devices could not send: the project may be over a quota, see Projects and Data.',
  },
  'device/disk_failed': {
    means: 'The device’s disk did not take them.',
    todo: 'Nothing for few; for many, look at one model or OS version.',
  },
  'device/too_old': {
    means: 'They waited for longer than the server takes events.',
    todo: 'Devices were offline for days, the server was away, or the project was over a quota: see Projects and Data.',
  },
  'device/refused': {
    means: 'The server refused them for good.',
    todo: 'See the reasons of “rejected”: they say what was wrong.',
  },
  'device/too_large': {
    means: 'Larger than the server takes, even alone.',
    todo: 'Send shorter attributes and stacks.',
  },
  'device/filtered': {
    means: 'The app’s own `before_send` did not let them pass.',
    todo: 'Nothing, when that is meant.',
  },
  'device/disabled': { means: 'Collection was switched off while they waited.', todo: 'Nothing, when that is meant.' },
};

/** Device codes are asked for with the outcome `device`. */
export function reasonOf(outcome: string, code: string): Reason {
  return (
    REASONS[`${outcome}/${code}`] ??
    REASONS[code] ??
    REASONS[`${outcome}/`] ?? {
      means: 'A reason that this page does not know.',
      todo: 'The log of the server says more. The server may be newer than this page.',
    }
  );
}

export const OUTCOMES: Record<string, string> = {
  stored: 'Stored',
  duplicate: 'Duplicate',
  limited: 'Renamed',
  scrubbed: 'Scrubbed',
  erased: 'Erased',
  rejected: 'Rejected',
  dead_letter: 'Kept aside',
  device: 'Dropped on devices',
};

/** What a count is of: events, except of batches that were refused as a whole. */
export function signalLabel(signal: string): string {
  return signal === 'batch' ? 'whole batches' : signal.replaceAll('_', ' ');
}
