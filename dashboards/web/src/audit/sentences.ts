// Writes entries of the audit log as sentences: the action, its target, and the page that shows the target. Pure.

import type { operations } from '../../.generated/schema';
import type { Schemas } from '../api/client';

export type Entry = Schemas['AuditEntry'];
export type Action = NonNullable<NonNullable<operations['audit_list']['parameters']['query']>['action']>;

interface Sentence {
  /** The name of the action in the filter. */
  label: string;
  /** Before the target: `created ingest key`. */
  verb: string;
  /** The text for the target. By default, the name of the target. An empty text means that the sentence has no target. */
  target?: (entry: Entry) => string;
  /** After the target: `as editor`. */
  after?: (entry: Entry) => string;
  /** The page that shows the target. */
  page?: (entry: Entry) => { path: string; parameters?: Record<string, string> };
}

const detail = (entry: Entry): Record<string, unknown> => (entry.detail ?? {}) as Record<string, unknown>;
const text = (entry: Entry, key: string): string => {
  const value = detail(entry)[key];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};
const noted = (entry: Entry) => (text(entry, 'note') ? `: ${text(entry, 'note')}` : '');
const none = () => '';
const on = (path: string, parameters?: Record<string, string>) => () => ({ path, parameters });

const KEYS = { page: on('/keys') };
const DEVICE_KEYS = { page: on('/device-keys') };
const TOKENS = { page: on('/tokens') };
const PEOPLE = { page: on('/people') };
const CHANNELS = { page: on('/notifications') };
const MUTES = { page: on('/mutes') };
const FILES = { page: on('/symbols', { tab: 'files' }) };
const revisionOn = (path: string) => ({
  target: (entry: Entry) => `revision ${entry.subject}`,
  page: (entry: Entry) => ({ path, parameters: { tab: 'history', revision: entry.subject } }),
});
const CONFIGURATION = revisionOn('/config');
const RULES = revisionOn('/rules');
const ALERT_RULE = { page: (entry: Entry) => ({ path: `/alert-rules/${entry.subject}` }) };
const INCIDENT = { page: (entry: Entry) => ({ path: `/incidents/${entry.subject}` }) };
const GROUP = {
  target: (entry: Entry) => text(entry, 'name') || `…${entry.subject.slice(-8)}`,
  page: (entry: Entry) => ({ path: `/jank/${entry.subject}` }),
};
const PROJECT = { target: (entry: Entry) => text(entry, 'name') || entry.subject, page: on('/projects') };
const ERASURE = {
  target: (entry: Entry) => `${text(entry, 'kind') || 'data'} of ${entry.subject}`,
  page: (entry: Entry) => ({ path: '/data', parameters: entry.project ? { tab: 'erasure' } : undefined }),
};
const purposes: Record<string, string> = { setup: 'the first admin', invite: 'a new person', reset: 'a new password' };

/** One sentence per action of the API. A missing action is a compile error. */
export const SENTENCES: Record<Action, Sentence> = {
  'project.created': { label: 'Project created', verb: 'created project', ...PROJECT },
  'project.updated': { label: 'Project changed', verb: 'changed project', ...PROJECT },
  'ingest_key.created': { label: 'Ingest key created', verb: 'created ingest key', ...KEYS },
  'ingest_key.expiry_set': { label: 'Ingest key: expiry changed', verb: 'changed the expiry of ingest key', ...KEYS },
  'ingest_key.quotas_set': { label: 'Ingest key: quotas changed', verb: 'changed the quotas of ingest key', ...KEYS },
  'ingest_key.revoked': { label: 'Ingest key revoked', verb: 'revoked ingest key', ...KEYS },
  'device_key.created': { label: 'Device key registered', verb: 'registered device key', ...DEVICE_KEYS },
  'device_key.revoked': { label: 'Device key revoked', verb: 'revoked device key', ...DEVICE_KEYS },
  'user.created': { label: 'Person added', verb: 'added', ...PEOPLE },
  'invitation.cancelled': { label: 'Invitation cancelled', verb: 'cancelled the invitation of', ...PEOPLE },
  'user.disabled': { label: 'Person disabled', verb: 'disabled', ...PEOPLE },
  'user.enabled': { label: 'Person enabled', verb: 'enabled', ...PEOPLE },
  'user.password_set': { label: 'Password set', verb: 'set the password of' },
  'user.operator_set': {
    label: 'Installation role changed',
    verb: 'changed the installation role of',
    after: (entry) => (detail(entry).is_admin === true ? 'to admin' : 'to none'),
    ...PEOPLE,
  },
  'identity.linked': { label: 'Identity linked', verb: 'linked an identity to', ...PEOPLE },
  'identity.unlinked': { label: 'Identity unlinked', verb: 'unlinked the identity of', ...PEOPLE },
  'membership.set': {
    label: 'Role set',
    verb: 'set the role of',
    after: (entry) => {
      const before = text(entry, 'role_before');
      return `to ${text(entry, 'role')}${before ? ` (before: ${before})` : ''}`;
    },
    ...PEOPLE,
  },
  'membership.removed': { label: 'Role removed', verb: 'removed the role of', ...PEOPLE },
  'invitation.created': {
    label: 'Invitation created',
    verb: 'created an invitation for',
    target: (entry) => entry.subject_name ?? purposes[text(entry, 'purpose')] ?? 'a person',
    ...PEOPLE,
  },
  'invitation.taken': {
    label: 'Invitation used',
    verb: 'used the invitation for',
    target: (entry) => entry.subject_name ?? purposes[text(entry, 'purpose')] ?? 'a person',
    ...PEOPLE,
  },
  'session.created': { label: 'Logged in', verb: 'logged in', target: none },
  'session.revoked': { label: 'Session ended', verb: 'ended a session', target: none },
  'session.all_revoked': { label: 'All sessions ended', verb: 'ended all sessions of' },
  'session.reused': { label: 'Session token reused', verb: 'ended a session whose token was used twice', target: none },
  'api_token.created': {
    label: 'API token created',
    verb: 'created API token',
    after: (entry) => (text(entry, 'role') ? `as ${text(entry, 'role')}` : ''),
    ...TOKENS,
  },
  'api_token.revoked': { label: 'API token revoked', verb: 'revoked API token', ...TOKENS },
  'configuration.saved': {
    label: 'Configuration saved',
    verb: 'saved the configuration as',
    after: noted,
    ...CONFIGURATION,
  },
  'configuration.rolled_back': {
    label: 'Configuration rolled back',
    verb: 'saved the configuration as',
    after: (entry) => `by rolling back to revision ${text(entry, 'to')}`,
    ...CONFIGURATION,
  },
  'configuration.switched_off': {
    label: 'Project switched off',
    verb: 'switched the project off with',
    after: noted,
    ...CONFIGURATION,
  },
  'configuration.switched_on': {
    label: 'Project switched on',
    verb: 'switched the project on with',
    after: noted,
    ...CONFIGURATION,
  },
  'rule_set.saved': { label: 'Rules saved', verb: 'saved the rules as', after: noted, ...RULES },
  'rule_set.rolled_back': {
    label: 'Rules rolled back',
    verb: 'saved the rules as',
    after: (entry) => `by rolling back to revision ${text(entry, 'to')}`,
    ...RULES,
  },
  'alert_rule.created': { label: 'Alert rule created', verb: 'created alert rule', ...ALERT_RULE },
  'alert_rule.updated': {
    label: 'Alert rule changed',
    verb: 'changed alert rule',
    after: (entry) => (detail(entry).enabled === false ? '(off)' : ''),
    ...ALERT_RULE,
  },
  'alert_rule.deleted': { label: 'Alert rule deleted', verb: 'deleted alert rule' },
  'incident.acknowledged': { label: 'Incident acknowledged', verb: 'acknowledged incident', ...INCIDENT },
  'incident.acknowledgement_withdrawn': {
    label: 'Acknowledgement withdrawn',
    verb: 'withdrew the acknowledgement of incident',
    ...INCIDENT,
  },
  'incident.assigned': {
    label: 'Incident assigned',
    verb: 'assigned incident',
    after: (entry) => `to ${text(entry, 'assignee')}`,
    ...INCIDENT,
  },
  'incident.unassigned': {
    label: 'Incident unassigned',
    verb: 'removed the assignee of incident',
    ...INCIDENT,
  },
  'incident.commented': { label: 'Incident commented on', verb: 'commented on incident', ...INCIDENT },
  'incident.comment_deleted': {
    label: 'Comment on incident deleted',
    verb: 'deleted a comment on incident',
    ...INCIDENT,
  },
  'mute.created': { label: 'Mute created', verb: 'muted alerts:', ...MUTES },
  'mute.ended': { label: 'Mute ended', verb: 'ended the mute', ...MUTES },
  'jank_group.resolved': {
    label: 'Jank group resolved',
    verb: 'resolved the jank group',
    after: (entry) => `in ${text(entry, 'app_version')}`,
    ...GROUP,
  },
  'jank_group.ignored': {
    label: 'Jank group ignored',
    verb: 'ignored the jank group',
    after: (entry) => `up to ${text(entry, 'app_version')}`,
    ...GROUP,
  },
  'jank_group.reopened': { label: 'Jank group reopened', verb: 'reopened the jank group', ...GROUP },
  'jank_group.commented': { label: 'Jank group commented on', verb: 'commented on the jank group', ...GROUP },
  'jank_group.comment_deleted': {
    label: 'Comment on jank group deleted',
    verb: 'deleted a comment on the jank group',
    ...GROUP,
  },
  'channel.created': { label: 'Channel created', verb: 'created channel', ...CHANNELS },
  'channel.updated': { label: 'Channel changed', verb: 'changed channel', ...CHANNELS },
  'channel.deleted': { label: 'Channel deleted', verb: 'deleted channel' },
  'notification.retried': {
    label: 'Notification sent again',
    verb: 'sent a failed notification again',
    target: none,
    ...CHANNELS,
  },
  'scrubbing.set': {
    label: 'Scrubbing set',
    verb: 'changed the',
    target: () => 'scrubbing rules',
    page: on('/data', { tab: 'scrubbing' }),
  },
  'storage.set': { label: 'Storage set', verb: 'changed the', target: () => 'storage settings', page: on('/data') },
  'source_links.set': {
    label: 'Source links set',
    verb: 'changed the',
    target: () => 'source links',
    page: on('/symbols', { tab: 'links' }),
  },
  'trace_links.set': {
    label: 'Trace links set',
    verb: 'changed the',
    target: () => 'trace links',
    page: on('/data', { tab: 'opentelemetry' }),
  },
  'forward.set': {
    label: 'Forwarding set',
    verb: 'changed the',
    target: () => 'forwarding settings',
    page: on('/data', { tab: 'opentelemetry' }),
  },
  'saved_view.created': { label: 'View saved', verb: 'saved view' },
  'saved_view.updated': { label: 'View changed', verb: 'changed view' },
  'saved_view.deleted': { label: 'View deleted', verb: 'deleted view' },
  'erasure.requested': { label: 'Erasure requested', verb: 'requested to erase', ...ERASURE },
  'erasure.finished': { label: 'Erasure finished', verb: 'erased', ...ERASURE },
  'symbol_file.added': { label: 'Symbol file added', verb: 'added symbol file', ...FILES },
  'symbol_file.named': { label: 'Id added to symbol file', verb: 'added an id to symbol file', ...FILES },
  'symbol_file.removed': { label: 'Symbol file removed', verb: 'removed symbol file' },
};

export interface SentenceParts {
  verb: string;
  target: string;
  page?: { path: string; parameters?: Record<string, string> };
  after: string;
}

/** Falls back to the name of the action if a newer server added the action. */
export function tell(entry: Entry): SentenceParts {
  const sentence: Sentence = SENTENCES[entry.action as Action] ?? {
    label: '',
    verb: entry.action.replaceAll(/[._]/g, ' '),
  };
  const target = sentence.target ? sentence.target(entry) : nameOf(entry);
  const after = sentence.after?.(entry) ?? '';
  return { verb: sentence.verb, target, page: target ? sentence.page?.(entry) : undefined, after };
}

/** `Ann created ingest key ‘mobile’.` */
export function sentenceText(entry: Entry, who: string): string {
  const { verb, target, after } = tell(entry);
  const words = [who, verb, target && `‘${target}’`, !after.startsWith(':') && after];
  return `${words.filter(Boolean).join(' ')}${after.startsWith(':') ? after : '.'}`;
}

/** The name of the target, or its shortened id if the server does not know a name. */
function nameOf(entry: Entry): string {
  return entry.subject_name ?? (/^[0-9a-f-]{36}$/.test(entry.subject) ? `…${entry.subject.slice(-8)}` : entry.subject);
}

/** `Ann`, `API token CI`, `ann on the command line`, `the server (alerts)`. */
export function whoOf(entry: Entry): string {
  const [kind = '', name = ''] = entry.actor.split(/:(.*)/s);
  switch (kind) {
    case 'user':
      return entry.actor_name ?? `a person (…${name.slice(-8)})`;
    case 'token':
      return entry.actor_name ? `API token ${entry.actor_name}` : `an API token (…${name.slice(-8)})`;
    case 'cli':
      return `${name} on the command line`;
    default:
      return `the server (${name})`;
  }
}

const TIMES = /_at$|^until$/;

/** The details of an entry as pairs of name and text, except the details in the sentence. `time` formats times. */
export function factsOf(entry: Entry, time: (micros: number) => string): [string, string][] {
  return facts('', detail(entry), time).filter(([name]) => name !== 'name' && name !== 'note');
}

function facts(prefix: string, value: unknown, time: (micros: number) => string): [string, string][] {
  if (value === null || value === undefined || value === '') return [];
  const name = prefix.replaceAll('_', ' ');
  if (Array.isArray(value)) {
    const plain = value.every((one) => typeof one !== 'object');
    return value.length === 0 ? [] : [[name, plain ? value.join(', ') : JSON.stringify(value)]];
  }
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([key, inner]) => facts(prefix ? `${prefix} ${key}` : key, inner, time));
  }
  if (typeof value === 'number' && TIMES.test(prefix)) return [[name, time(value)]];
  return [[name, typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)]];
}
