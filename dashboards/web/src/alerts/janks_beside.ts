// Finds the janks at the time and on the pages of an incident. Rates are per hour of use, for both sides of the comparison.

import { queryTable, type Signal } from '../api/query';
import { everIn, judgeSides, withNew, type JudgedJank } from '../jank/group_changes';
import { jankGroups, type Group } from '../jank/groups';
import { hoursOfUse, perHour, type HoursOfUse } from '../jank/rates';
import type { Where } from '../jank/queries';
import { withValues, type Filters } from '../navigation/filters';
import { changeOf, type Evidence as Tested } from '../versions/change';
import { sameFilters, type Evidence } from './incident';
import { isComparison } from './rule_form';

export interface Rate {
  group: Group;
  /** Per hour of use. */
  now: number | null;
  /** `null` if too few installs have the group, or if the rule does not compare. */
  base: number | null;
  /** No stored jank from before is in the group, although the base has enough use. */
  isNew: boolean;
  evidence: Tested;
}

export interface JanksBeside {
  rates: Rate[];
  filters: Filters;
  where: Where;
  /** The pages on which the watched events ran. Empty means all pages. */
  pages: string[];
}

/** Names the unit of the rates: `per hour on Feed, Cart`, `per hour on these pages` without names, or `per hour of use`. */
export function perHourText(pages: string[], isNamed = true): string {
  if (pages.length === 0) return 'per hour of use';
  return `per hour on ${isNamed ? pages.join(', ') : 'these pages'}`;
}

const SHOWN = 5;
/** The minimum share of the watched events for a page to be included. */
const LEAST_SHARE = 0.05;
const MOST_PAGES = 20;
/** Signals whose events carry the page on which they ran. */
const ON_PAGES = ['spans', 'page_loads', 'page_requests', 'app_starts', 'recompositions'];

export async function janksBeside(evidence: Evidence, project: string, signal: AbortSignal): Promise<JanksBeside> {
  const { now, base } = sidesOf(evidence, project);
  const pages = await pagesOf(evidence, now, signal);
  const onPages = (filters: Filters) => (pages.length > 0 ? withValues(filters, 'page', pages) : filters);
  const where = ownDimensions(evidence, now);
  const filters = onPages(now);
  const asked = { where, order: '-sum_ms' };
  const [found, use] = await Promise.all([
    jankGroups(filters, { ...asked, limit: SHOWN }, signal),
    hoursOfUse(filters, signal),
  ]);
  const before = base && (await baseOf(onPages(base), where, found.groups, signal));
  const hours = { hours: use.hours, baseHours: before?.hours ?? 0 };
  const judged = before && (await withNew(judgeSides(before.sides, hours), everBefore(evidence, now), signal));
  const rates = found.groups.map((group, place) => rateOf(group, judged?.[place], hours));
  return { rates, filters, where, pages };
}

/** Exported for its test. */
export function rateOf(group: Group, judged: JudgedJank | undefined, { hours, baseHours }: HoursOfUse): Rate {
  return {
    group,
    now: perHour(group.row.values[0], hours),
    base: judged && !judged.few ? perHour(judged.baseCount, baseHours) : null,
    isNew: judged?.isNew ?? false,
    evidence: judged ?? {},
  };
}

/**
 * The group that best explains an incident: of the groups that are new or significantly more frequent, the one that lost the most
 * time.
 */
export function likelyCause(rates: Rate[]): Rate | undefined {
  return rates.find(
    (one) => one.isNew || changeOf(one.now, one.base, 'lower', 'per_hour', one.evidence)?.verdict === 'worse',
  );
}

/** All stored janks of the base version, on all pages. In a comparison of weeks, all stored janks before the incident. */
export function everBefore({ sides }: Evidence, filters: Filters): Filters {
  return sides.base_version ? everIn(filters, [sides.base_version]) : everIn(filters, [], new Date(sides.from / 1000));
}

/** Both sides of the groups, in the order of the groups, and the hours of use of the base. */
async function baseOf(filters: Filters, where: Where, groups: Group[], signal: AbortSignal) {
  const ofThese = { ...where, group_id: groups.map((one) => one.id) };
  const question = { signal: 'janks' as const, by: ['group_id'], measures: ['count', 'installs'], where: ofThese };
  const [found, use] = await Promise.all([
    groups.length > 0 ? queryTable(filters, question, signal) : null,
    hoursOfUse(filters, signal),
  ]);
  const before = new Map(found?.rows.map(({ keys, values }) => [keys[0], values]));
  const sides = groups.map(({ id, title, row: { values } }) => {
    const [baseCount, baseInstalls] = before.get(id) ?? [];
    return {
      ...{ id, title, count: values[0] ?? 0, installs: values[1] ?? 0 },
      ...{ baseCount: baseCount ?? 0, baseInstalls: baseInstalls ?? 0 },
    };
  });
  return { sides, hours: use.hours };
}

/** The filters of each side. Each side has its own period and, for a regression, its own version. */
export function sidesOf(evidence: Evidence, project: string): { now: Filters; base: Filters | null } {
  const { sides } = evidence;
  const now = { ...sameFilters(evidence, project), baseVersion: '' };
  if (!isComparison(evidence.condition) || typeof sides.base_from !== 'number' || typeof sides.base_to !== 'number')
    return { now, base: null };
  const range = {
    kind: 'absolute',
    from: new Date(sides.base_from / 1000),
    to: new Date(sides.base_to / 1000),
  } as const;
  const version = sides.base_version ? [sides.base_version] : (now.chosen.app_version ?? []);
  return { now, base: { ...withValues(now, 'app_version', version), range } };
}

/** The pages on which most of the watched events ran. Janks on other pages are excluded. */
async function pagesOf(evidence: Evidence, filters: Filters, signal: AbortSignal): Promise<string[]> {
  const { metric } = evidence;
  if (filters.chosen.page || !ON_PAGES.includes(metric.signal)) return [];
  const where = ownFilters(evidence, filters);
  const question = { signal: metric.signal as Signal, by: ['page'], measures: ['count'], where, compare: false };
  const answer = await queryTable(filters, { ...question, order: '-count', limit: MOST_PAGES }, signal);
  return mostlyOn(answer.rows.map(({ keys, values }) => ({ page: keys[0] ?? '', count: values[0] ?? 0 })));
}

/** The pages with at least `LEAST_SHARE` of all events. Empty if events without a page also reach that share. */
export function mostlyOn(rows: { page: string; count: number }[]): string[] {
  const all = rows.reduce((sum, row) => sum + row.count, 0);
  const fair = rows.filter((row) => row.count >= LEAST_SHARE * all);
  return fair.some((row) => row.page === '') ? [] : fair.map((row) => row.page);
}

/** Excludes stalls that the rules mark as not a cause. For rules on janks, adds the dimensions that the filter bar does not have. */
function ownDimensions(evidence: Evidence, filters: Filters): Where {
  const not = { not_a_cause: 'false' };
  return evidence.metric.signal === 'janks' ? { ...not, ...ownFilters(evidence, filters) } : not;
}

/** The watched values of dimensions that the filter bar does not have. */
export function ownFilters({ metric, group }: Evidence, filters: Filters): Where {
  const all: Record<string, string | string[]> = { ...metric.filters, ...group };
  const named = Object.entries(all).filter(([name]) => !(name in filters.chosen) && !name.includes('.'));
  return Object.fromEntries(named);
}
