// Which filters a signal can be asked with: traffic has no page, the health of the SDK no network. Pure.

import type { Dimension, Filters } from '../navigation/filters';
import type { Signal } from './query';

const WITHOUT: Partial<Record<Signal, Dimension[]>> = {
  traffic: ['page'],
  start_phases: ['page', 'network'],
  usage: ['page', 'network'],
  sdk_health: ['page', 'network'],
  sdk_drops: ['page', 'network'],
  outcomes: ['app_version', 'os_name', 'os_version', 'device_class', 'device_model', 'network', 'page', 'locale'],
};

/** The filters of the address without those that the signal has not: the server would refuse the whole question. */
export function applicable(filters: Filters, signal: Signal): Filters {
  const chosen = { ...filters.chosen };
  for (const dimension of WITHOUT[signal] ?? []) delete chosen[dimension];
  const baseVersion = signal === 'outcomes' ? '' : filters.baseVersion;
  return { ...filters, chosen, baseVersion };
}

/** The chosen ones that the signal cannot be asked with. */
export function ignored(filters: Filters, signal: Signal): Dimension[] {
  return (WITHOUT[signal] ?? []).filter((dimension) => filters.chosen[dimension]);
}
