// Writes the filters of a rule with the words of the screens. Pure.

import { STEPS, strategyLabel } from '../jank/words';
import { UPTIME_LABELS } from '../resources/uptime_growth';
import { kindName } from '../spans/kinds';

const DIMENSIONS: Record<string, string> = {
  app_id: 'app',
  app_version: 'app version',
  code_class: 'class',
  code_function: 'function',
  during_span: 'span at the time',
  during_trace: 'trace at the time',
  ended: 'end',
  foreground: 'in the foreground',
  group_id: 'jank group',
  http_status: 'HTTP status',
  install_id: 'install',
  not_a_cause: 'taken after the stall',
  on_main_thread: 'on the main thread',
  os_name: 'OS',
  os_version: 'OS version',
  refresh_hz: 'refresh rate',
  root: 'root span',
  sdk_name: 'SDK',
  sdk_version: 'SDK version',
  session_id: 'session',
  stack_hash: 'stack',
  uptime: 'time since the launch',
  user_id: 'user',
};

/** Filters by one value that have a sentence of their own. */
const SENTENCES: Record<string, string> = {
  'ended=killed': 'the process was killed during the stall',
  'ended=finished': 'the stall ended normally',
  'foreground=true': 'the app is in the foreground',
  'foreground=false': 'the app is in the background',
  'not_a_cause=true': 'samples were taken after the stall',
  'not_a_cause=false': 'samples taken after the stall are excluded',
  'on_main_thread=true': 'the span is on the main thread',
  'on_main_thread=false': 'the span is not on the main thread',
  'root=true': 'the span is a root',
  'root=false': 'the span is not a root',
};

/** The values of the dimensions whose values are names of the API. */
const VALUES: Record<string, (value: string) => string> = {
  duration: (value) => Object.fromEntries(STEPS)[value] ?? value,
  ended: (value) => ({ killed: 'process killed', finished: 'normal' })[value] ?? value,
  foreground: yesOrNo,
  kind: (value) => (value === 'anr' ? 'ANR' : kindName(value)),
  not_a_cause: yesOrNo,
  on_main_thread: yesOrNo,
  root: yesOrNo,
  strategy: strategyLabel,
  uptime: (value) => UPTIME_LABELS[value] ?? value,
};

function yesOrNo(value: string): string {
  return { true: 'yes', false: 'no' }[value] ?? value;
}

export const dimension = (name: string) => DIMENSIONS[name] ?? name.replace(/^attribute\./, '').replaceAll('_', ' ');

export const valueText = (name: string, value: string) => (value && VALUES[name]?.(value)) || value || '(none)';

/** `kind is operation or construction`, `title contains json`. */
export function filterText([name, values]: [string, string[]]): string {
  const [, contains] = /^contains\.(.*)/.exec(name) ?? [];
  // A part of a value is not a name of the API.
  if (contains) return `${dimension(contains)} contains ${values.map((value) => value || '(none)').join(' or ')}`;
  const own = values.length === 1 ? SENTENCES[`${name}=${values[0]}`] : undefined;
  return own ?? `${dimension(name)} is ${values.map((value) => valueText(name, value)).join(' or ')}`;
}
