// Searches the server for the text of the palette: spans, jank groups and versions by name, and objects by id.

import { api, ask } from '../api/client';
import { Problem } from '../api/problem';
import { queryTable, type Question } from '../api/query';
import { dateTime } from '../format/times';
import { format } from '../format/units';
import { addressOf, only, sessionAddress } from '../navigation/links';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';
import { navigate } from '../navigation/router.svelte';
import { routeOf } from '../navigation/routes';
import { bestSpans, recognised, type Command } from './matching';

/** The minimum length of a text to search for, because shorter texts match too much. */
export const SHORTEST = 2;
const MOST = 5;
/**
 * The maximum number of names to request. The server searches for the longest word, and the browser then filters the names by the other
 * words.
 */
const MOST_OF_WORD = 200;
/** The minimum period of a search by name, because users also search for names that are absent from a short period. */
const SEARCHED_DAYS = 30;
/** Ids are searched in this many days. */
const ID_DAYS = 90;

type Find = (filters: Filters, text: string, abort: AbortSignal) => Promise<Command[]>;
const opening = (address: string) => () => navigate(address);

/** `filters` and `path` are the filters and the path of the current page. */
export async function found(filters: Filters, path: string, text: string, abort: AbortSignal): Promise<Command[]> {
  const id = recognised(text);
  if (id?.kind === 'hex') return byHex(filters, id, abort);
  if (id?.kind === 'group') return group(filters, id.id, abort);
  const ofPage: Find = (...all) => versions(path, ...all);
  const lists = await Promise.all([spans, groups, ofPage].map((find) => find(filters, text, abort)));
  return lists.flat();
}

/** The values of the last dimension of `by` that contain all words of the text. Ignores the filters of the page. */
async function named(filters: Filters, text: string, question: Question & { by: string[] }, abort: AbortSignal) {
  const { range, period } = searched(filters);
  const all = { ...filters, range, chosen: {}, baseVersion: '' };
  const words = text.trim().toLowerCase().split(/\s+/);
  const name = question.by.at(-1)!;
  // The server can search for only one text.
  const contains = { [name]: words.toSorted((a, b) => b.length - a.length)[0]! };
  const limit = words.length > 1 ? MOST_OF_WORD : (question.limit ?? MOST);
  const { rows } = await queryTable(all, { measures: ['count'], order: '-count', contains, ...question, limit }, abort);
  return rows
    .map(({ keys, values }) => ({ keys: keys as string[], count: values[0], period }))
    .filter(({ keys }) => words.every((word) => keys.at(-1)!.toLowerCase().includes(word)))
    .slice(0, limit);
}

/** The period of the page, or the last 30 days if the period of the page is shorter. */
function searched({ range }: Filters): { range: Filters['range']; period: string } {
  const { from, to } = bounds(range, new Date());
  if (to.getTime() - from.getTime() >= SEARCHED_DAYS * 86_400_000) return { range, period: 'in this period' };
  return { range: { kind: 'relative', text: `${SEARCHED_DAYS}d` }, period: `in the last ${SEARCHED_DAYS} days` };
}

const spans: Find = async (filters, text, abort) => {
  const rows = await named(filters, text, { signal: 'spans', by: ['kind', 'name'], limit: MOST_OF_WORD }, abort);
  const all = rows.map(({ keys: [kind = '', name = ''], ...row }) => ({ kind, name, ...row }));
  const best = bestSpans(all, text).filter((one, index, sorted) => sorted[index - 1]?.name !== one.name);
  return best.slice(0, MOST).map(({ name, count, period }) => ({
    ...{ id: `span-${name}`, section: 'Spans', label: name, note: `${format(count)} ${period}` },
    run: opening(addressOf('/spans', { ...filters, range: searched(filters).range }, { name })),
  }));
};

const groups: Find = async (filters, text, abort) => {
  const rows = await named(filters, text, { signal: 'janks', by: ['group_id', 'title'] }, abort);
  return rows.slice(0, MOST).map(({ keys: [id = '', title = ''], count, period }) => ({
    ...{ id: `group-${id}`, section: 'Jank groups', label: title, note: `${format(count)} ${period}` },
    run: opening(addressOf(`/jank/${id}`, { ...filters, range: searched(filters).range })),
  }));
};

/** A version becomes a filter of the page. */
async function versions(path: string, filters: Filters, text: string, abort: AbortSignal): Promise<Command[]> {
  const question = { signal: 'usage' as const, by: ['app_version'], measures: ['sessions'], order: '-sessions' };
  const rows = await named(filters, text, question, abort);
  const page = routeOf(path)?.filters ? path : '/';
  return rows.slice(0, MOST).map(({ keys: [version = ''], count, period }) => ({
    ...{ id: `version-${version}`, section: 'Versions', label: version, note: `${format(count)} sessions ${period}` },
    run: opening(addressOf(page, only(filters, 'app_version', version))),
  }));
}

const lately = (filters: Filters): Filters => ({
  ...{ project: filters.project, chosen: {}, baseVersion: '' },
  range: { kind: 'relative', text: `${ID_DAYS}d` },
});

async function group(filters: Filters, id: string, abort: AbortSignal): Promise<Command[]> {
  const question: Question = { signal: 'janks', by: ['title'], where: { group_id: id }, measures: ['count'], limit: 1 };
  const { rows } = await queryTable(lately(filters), question, abort);
  return rows.map(({ keys: [title = ''] }) => ({
    ...{ id: 'group', section: 'Jank groups', label: title || id, note: id },
    run: opening(addressOf(`/jank/${id}`, filters)),
  }));
}

async function byHex(
  filters: Filters,
  { hex, uuid }: { hex: string; uuid: string },
  abort: AbortSignal,
): Promise<Command[]> {
  const { project } = filters;
  const since = new Date(Date.now() - ID_DAYS * 86_400_000).toISOString();
  const sessionsWith = (where: Record<string, string>) => {
    const query = { ...where, from: since, to: new Date().toISOString(), limit: 1 } as never;
    return ask(api.GET('/api/v1/projects/{project}/sessions', { params: { path: { project }, query }, signal: abort }));
  };
  const traced = api.GET('/api/v1/projects/{project}/traces/{trace}', {
    params: { path: { project, trace: hex } },
    signal: abort,
  });
  const [trace, ofSession, ofInstall] = await Promise.all([
    ask(traced).catch(noneIfUnknown),
    sessionsWith({ session_id: uuid }),
    sessionsWith({ install_id: uuid }),
  ]);
  const all: Command[] = [];
  const add = (kind: string, note: string, address: string) =>
    all.push({ id: kind, section: 'Found by id', label: `${kind} ${uuid.slice(0, 8)}…`, note, run: opening(address) });
  if (trace?.spans.length) add('Trace', `${trace.spans.length} spans`, addressOf(`/traces/${hex}`, filters));
  const [session, install] = [ofSession.sessions[0], ofInstall.sessions[0]];
  if (session) add('Session', `began ${dateTime(session.start)}`, sessionAddress(filters, uuid, session.start));
  if (install) add('Install', install.device_model, addressOf(`/installs/${uuid}`, filters));
  return all;
}

function noneIfUnknown(error: unknown): null {
  if (Problem.from(error).status === 404) return null;
  throw error;
}
