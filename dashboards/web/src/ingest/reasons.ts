// Explains why events were not stored, and what to do about each reason. The codes come from the protocol and the SDK. Pure.

export interface Reason {
  means: string;
  todo: string;
}

const CLOCK = 'Check the clocks of the devices, and how long they keep events before the upload.';
const BODY =
  'Look for a proxy between device and server, or a custom client, that changes or truncates bodies. Devices retry, and each attempt is counted.';
const KEY =
  'Compare the key in the app with the list under Ingest keys. The key may be revoked, mistyped or from another project.';
const SIZE = 'Lower upload.max_batch_events under Remote config; the SDK splits such a batch by itself.';

/** Keys are outcome and code, or only the code if its meaning does not depend on the outcome. */
const REASONS: Record<string, Reason> = {
  'stored/': { means: 'Accepted and stored.', todo: 'Nothing.' },
  'duplicate/': { means: 'The same events arrived before. They are stored once.', todo: 'Nothing.' },
  'duplicate/batch': {
    means:
      'A whole batch arrived twice, because the device received no response to the first upload. The batch is stored once.',
    todo: 'A few duplicates need no action. If there are many, check the network and the timeouts of any proxy in front of unjank.',
  },
  'dead_letter/': {
    means: 'The server accepted the events, but its store rejected them. They are kept as dead letters, not lost.',
    todo: 'On the server, `unjank dead-letter list` shows the cause. Once the cause is fixed, `unjank dead-letter retry` stores the events.',
  },
  'scrubbed/': {
    means: 'Stored after personal data or secrets were removed from a text. Counts texts, not events.',
    todo: 'Stop sending such data: look for names and attributes with [email], [secret] or similar.',
  },
  'scrubbed/own_rule': {
    means: 'Stored after a rule of the project replaced parts of a text. Counts texts, not events.',
    todo: 'Nothing, if this is intended. The rules are under Data, Scrubbing.',
  },
  'erased/': {
    means: 'Stored at first, then erased on request.',
    todo: 'Nothing. The receipts are under Data, Erasure.',
  },
  'limited/': {
    means: 'Stored under the name “(other)”, because more distinct names arrived in an hour than the server keeps.',
    todo: 'Filter by “(other)” and group by version. The usual cause is names that contain ids.',
  },
  time_out_of_range: { means: 'Too old or too far ahead, after the clock was corrected.', todo: CLOCK },
  duration_out_of_range: {
    means: 'A duration below zero or over a day.',
    todo: 'The start and the end use different clocks, or a span was never ended. Check the code that creates the span.',
  },
  sample_rate_out_of_range: {
    means: 'A sample rate that is not from 1e-9 to 1.',
    todo: 'Correct the rate in the code that sends it.',
  },
  value_not_finite: {
    means: 'A metric that is not a finite number.',
    todo: 'Look for a division by zero in the monitor that sends the metric.',
  },
  value_out_of_range: {
    means:
      'A metric above 1e240 or below -1e240, or with a minimum above its maximum. Or a number of bytes, a count or an uptime above 2^42.',
    todo: 'The code that sends the number may use a placeholder, such as −1, for “no value”. Leave such numbers out.',
  },
  cumulative_histogram: {
    means: 'A histogram of OpenTelemetry that is cumulative. The server stores only the changes since the last report.',
    todo: 'Set OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta in the app.',
  },
  count_out_of_range: { means: 'A metric without samples.', todo: 'Do not send metrics without samples.' },
  name_missing: {
    means: 'An event without a name.',
    todo: 'Give the span, metric or page a name where it is created.',
  },
  unknown_module: {
    means: 'A stack with a frame of a module that the batch does not list.',
    todo: 'Update the SDK, or fix your custom client.',
  },
  no_list: { means: 'A signal that is not a list.', todo: 'Only custom clients do this. See the protocol.' },
  invalid_event: {
    means: 'An event that does not follow the protocol.',
    todo: 'Update the SDK, or fix your custom client.',
  },
  'rejected/rate_limited': {
    means: 'The project exceeded its quota for the signal, and the server asked devices to wait.',
    todo: 'Raise the quota of the ingest key, or lower the sampling of the signal under Remote config.',
  },
  quota_disk: {
    means: 'The project’s data takes more disk space than its quota.',
    todo: 'Raise the quota under Data, or lower the sampling under Remote config. Devices keep their events and retry.',
  },
  body_truncated: { means: 'A body that ended too early.', todo: BODY },
  corrupt_encoding: { means: 'A body that could not be decompressed.', todo: BODY },
  invalid_json: { means: 'A body that is not JSON.', todo: BODY },
  invalid_columns: { means: 'A columnar batch that is damaged.', todo: BODY },
  invalid_otlp: { means: 'A request of OpenTelemetry that could not be read.', todo: BODY },
  invalid_utf8: { means: 'A body that is not UTF-8 text.', todo: BODY },
  invalid_envelope: {
    means: 'A batch that does not follow the protocol.',
    todo: 'Update the SDK, or fix your custom client.',
  },
  invalid_resource: {
    means: 'A batch without its app, version or install.',
    todo: 'Set app id, version and install when you start the SDK.',
  },
  key_missing: { means: 'A batch without a key.', todo: KEY },
  key_unknown: { means: 'A batch with an unknown key.', todo: KEY },
  key_not_for_app: {
    means: 'A key for another app.',
    todo: 'Create a key for this app, or a key for all apps, under Ingest keys.',
  },
  token_expired: {
    means: 'An expired device token.',
    todo: 'Devices request a new token by themselves. If the error persists, check their clocks.',
  },
  token_invalid: { means: 'A device token that is not signed by a known key.', todo: 'See Device keys.' },
  token_not_for_install: { means: 'A device token of another install.', todo: 'Devices must not share tokens.' },
  device_token_required: {
    means: 'The project requires device tokens, but the app sent a key.',
    todo: 'Update the app, or make device tokens optional under Projects.',
  },
  body_stalled: {
    means: 'A body that did not arrive in time.',
    todo: 'A few cases need no action, because some networks are slow. Devices retry.',
  },
  body_too_large: { means: 'A batch over the size limit.', todo: SIZE },
  decompressed_too_large: { means: 'A batch over the size limit after decompression.', todo: SIZE },
  record_too_large: { means: 'A batch over the size of a record.', todo: SIZE },
  too_many_events: { means: 'A batch with too many events.', todo: SIZE },
  content_encoding: {
    means: 'A compression that the server does not support.',
    todo: 'Send identity, gzip, zstd or deflate.',
  },
  content_type: { means: 'A body whose content type is not JSON.', todo: 'Send Content-Type: application/json.' },
  'device/queue_full': {
    means: 'More events arrived at once than the queue in memory holds.',
    todo: 'Lower the sampling of the signal under Remote config, or trace fewer methods.',
  },
  'device/rate_limited': {
    means: 'The device’s own budget for the signal was used up, or the server asked the device to wait.',
    todo: 'Lower the sampling of the signal under Remote config. If the server asked the device to wait, see “rejected” and the quota of the key.',
  },
  'device/disk_full': {
    means:
      'The space for waiting events was used up while the device could not send, so the oldest events were dropped.',
    todo: 'Raise upload.max_queue_bytes under Remote config, or find out why devices could not send: the project may be over a quota, see Projects and Data.',
  },
  'device/memory_full': {
    means: 'The app keeps waiting events in memory only. There were too many, so the oldest were dropped.',
    todo: 'Let the app set a data directory, raise upload.max_queue_bytes under Remote config, or find out why devices could not send.',
  },
  'device/disk_failed': {
    means: 'The device could not write the events to its disk.',
    todo: 'A few cases need no action. If there are many, check whether the devices share a model or an OS version.',
  },
  'device/too_old': {
    means: 'The events waited on the device until they were too old for the server.',
    todo: 'Devices were offline for days, the server was down, or the project was over a quota: see Projects and Data.',
  },
  'device/too_short': {
    means: 'Methods shorter than the threshold of the app (`min_method_duration`).',
    todo: 'Nothing: the app set the threshold.',
  },
  'device/refused': {
    means: 'The server rejected the events permanently.',
    todo: 'See the reasons of “rejected”.',
  },
  'device/too_large': {
    means: 'An event larger than the server accepts, even alone in a batch.',
    todo: 'Send shorter attributes and stacks.',
  },
  'device/filtered': {
    means: 'The `before_send` of the app dropped the events.',
    todo: 'Nothing, if this is intended.',
  },
  'device/suspended': {
    means: 'The app’s process did not run for seconds during the event, so its duration says nothing about the app.',
    todo: 'Nothing.',
  },
  'device/disabled': {
    means: 'Collection was switched off while the events waited.',
    todo: 'Nothing, if this is intended.',
  },
};

/** Codes of devices have the outcome `device`. */
export function reasonOf(outcome: string, code: string): Reason {
  return (
    REASONS[`${outcome}/${code}`] ??
    REASONS[code] ??
    REASONS[`${outcome}/`] ?? {
      means: 'A reason that this page does not know.',
      todo: 'See the server log. The server may be newer than this page.',
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

/** The label of a count: the events of a signal, or batches that were rejected as a whole. */
export function signalLabel(signal: string): string {
  return signal === 'batch' ? 'whole batches' : signal.replaceAll('_', ' ');
}
