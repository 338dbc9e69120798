// The order of versions: 4.9 before 4.10, a release candidate before its release, build 9 before build 10. The order is the same as in
// `server/remote-config/src/version.rs`, and the cases in `version_order.json` beside that file check both.

interface Parsed {
  numbers: number[];
  pre: Part[] | null;
  build: Part[] | null;
}

/** A number without leading zeros, or letters in lower case. */
type Part = { digits: string } | { letters: string };

const NUMBERS = 8;
const APP = /^[^\s+(\d][^\s+(]*@/;
const BEFORE =
  /^((alpha|beta|canary|debug|dev|eap?|insiders?|milestone|nightly|pre|preview|rc|snapshot)(?![a-z])|[abm]\d+( |$))/i;
const AFTER = /^((fix|hotfix|patch|post)(?![a-z])|([pru]|s[pr])[-.]?\d|\d+-g[0-9a-f]+(-dirty)?$)/i;
/** `1.0.2k`, `0.9.8zh`. */
const LETTERS = /^([a-z]|z[a-z])$/i;
const COMMIT_ID = /^(?!\d+$)g?[0-9a-f]{7,}$/i;
const RELEASED = /^(?:final|ga|release)[-. ]*(\d.*)?$/is;
const PRE_RELEASE = /^[0-9a-z-]+(\.[0-9a-z-]+)*$/i;

function parse(version: string): Parsed | null {
  const plain = version
    .trim()
    .replace(APP, '')
    .replace(/^(version|release)[ /-][\s/-]*/i, '')
    .replace(/^v/i, '');
  const found = /^(\d+(?:\.\d+)*)(?!\d|\.(?![a-z][a-z\d]))(.*)$/is.exec(plain);
  const numbers = found?.[1]!.split('.') ?? [];
  if (!found || numbers.length > NUMBERS || numbers.some((number) => BigInt(number) >= 1n << 64n)) return null;
  const suffixes = split(found[2]!, numbers.length);
  if (!suffixes) return null;
  const build = suffixes.build?.trim().replace(/^build[ /-][\s/-]*/i, '') ?? null;
  const isReadable = (text: string | null) => text === null || (/[0-9a-z]/i.test(text) && !/[\p{Cc},|]/u.test(text));
  if (!isReadable(suffixes.pre) || !isReadable(build)) return null;
  return {
    numbers: numbers.map(Number),
    pre: suffixes.pre === null ? null : parts(suffixes.pre),
    build: build === null ? null : parts(build),
  };
}

type Suffixes = { pre: string | null; build: string | null };

/** Splits the text after the numbers into the pre-release and the build. */
function split(written: string, numbers: number): Suffixes | null {
  const rest = written.replace(/^, /, ' ');
  const [, before, suffix] = /^([^+(]*)(.*)$/s.exec(rest)!;
  if (suffix!.startsWith('(') && !suffix!.includes(')')) return null;
  const build = suffix === '' ? null : suffix!.slice(1).replace(suffix!.startsWith('(') ? /\)$/ : '', '');
  const text = before!.trim();
  if (text === '') return { pre: null, build };
  if (before!.startsWith(' ')) {
    if (BEFORE.test(text)) return { pre: text, build };
    const released = RELEASED.exec(text);
    return { pre: null, build: released ? (build ?? released[1] ?? null) : rest.trim() };
  }
  if (/^_\d/.test(before!)) return { pre: null, build: rest.slice(1) };
  if (/^[-._~]/.test(before!)) return stage(before!.slice(1), build);
  if (LETTERS.test(text) && numbers > (/^[ab]$/i.test(text) ? 2 : 1)) return { pre: null, build: text };
  return numbers > 1 && /^[a-z]+\d*\s*$/i.test(before!) ? stage(text, build) : null;
}

/** Reads a stage of the release: `rc.1`, `RELEASE`, `b2`. */
function stage(text: string, build: string | null): Suffixes | null {
  const [, pre, after] = /^([^ ]*) ?(.*)$/s.exec(text)!;
  if (!PRE_RELEASE.test(pre!)) return null;
  if (AFTER.test(pre!)) return { pre: null, build: pre! };
  const number = build ?? (after!.trim() || null);
  const released = RELEASED.exec(pre!);
  return released ? { pre: null, build: number ?? released[1] ?? null } : { pre: pre!, build: number };
}

/** Commit ids do not order versions. */
function parts(text: string): Part[] {
  const words = text.split(/[^0-9a-z]+/i).filter((word) => word !== '' && !COMMIT_ID.test(word));
  const runs = words.flatMap((word) => word.toLowerCase().match(/\d+|[a-z]+/g) ?? []);
  return runs.map((run) => (/^\d/.test(run) ? { digits: run.replace(/^0+/, '') } : { letters: run }));
}

function compareParts(a: Part[], b: Part[]): number {
  for (const [place, one] of a.entries()) {
    const other = b[place];
    if (!other) return 1;
    const by = comparePart(one, other);
    if (by !== 0) return by;
  }
  return a.length - b.length;
}

function comparePart(a: Part, b: Part): number {
  if ('digits' in a && 'digits' in b) return a.digits.length - b.digits.length || byText(a.digits, b.digits);
  if ('letters' in a && 'letters' in b) return byText(a.letters, b.letters);
  return 'digits' in a ? -1 : 1;
}

const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b));

let firstSeen = new Map<string, number>();

/** Stores when versions were first seen. The time orders versions whose texts do not determine an order. */
export function noteFirstSeen(versions: { version: string; firstSeen: number }[]) {
  firstSeen = new Map();
  for (const one of versions)
    firstSeen.set(one.version, Math.min(one.firstSeen, firstSeen.get(one.version) ?? Infinity));
}

/** Negative if `a` is older. Texts that are not versions come before all versions, in the order in which they were first seen. */
export function compareVersions(a: string, b: string): number {
  return byNumberAndBuild(a, b) || (firstSeen.get(a) ?? 0) - (firstSeen.get(b) ?? 0) || byText(a, b);
}

/** The order by the texts alone. Returns 0 if only the time of the first sight orders the versions. */
export function byNumberAndBuild(a: string, b: string): number {
  const [left, right] = [parse(a), parse(b)];
  if (!left || !right) return Number(left !== null) - Number(right !== null);
  for (let place = 0; place < NUMBERS; place += 1) {
    const by = (left.numbers[place] ?? 0) - (right.numbers[place] ?? 0);
    if (by !== 0) return by;
  }
  const pre =
    left.pre && right.pre ? compareParts(left.pre, right.pre) : Number(left.pre === null) - Number(right.pre === null);
  if (pre !== 0) return pre;
  if (left.build && right.build) return compareParts(left.build, right.build);
  return Number(left.build !== null) - Number(right.build !== null);
}

export interface VersionUse {
  app: string;
  version: string;
  sessions: number;
}

export interface VersionPair {
  app: string;
  latest: string;
  /** The previous version. Empty if there is no older version. */
  previous: string;
  /** All versions of the app, oldest first. */
  all: string[];
}

/** Versions with fewer sessions are not compared by default, because they may be builds of a developer. */
export const MIN_SESSIONS = 20;

/**
 * Picks the versions to compare: the latest version of the most used app, and the previous version. The version, base and app that the
 * reader chose take precedence.
 */
export function pickPair(
  uses: VersionUse[],
  chosen: { versions?: string[]; base?: string; apps?: string[] } = {},
): VersionPair | null {
  const wanted = uses.filter(
    (use) =>
      (!chosen.apps || chosen.apps.includes(use.app)) && (!chosen.versions || use.version === newest(chosen.versions)),
  );
  const app = busiest(wanted.length > 0 ? wanted : uses);
  if (app === null) return null;
  const ours = uses.filter((use) => use.app === app).toSorted((a, b) => compareVersions(a.version, b.version));
  const all = ours.map((use) => use.version);
  const enough = ours.filter((use) => use.sessions >= MIN_SESSIONS).map((use) => use.version);
  const candidates = enough.length > 0 ? enough : all;
  const latest = (chosen.versions && newest(chosen.versions)) ?? candidates.at(-1)!;
  const before = candidates.filter((version) => compareVersions(version, latest) < 0);
  return { app, latest, previous: chosen.base || (before.at(-1) ?? ''), all };
}

function newest(versions: string[]): string | undefined {
  return versions.toSorted(compareVersions).at(-1);
}

function busiest(uses: VersionUse[]): string | null {
  const sums = new Map<string, number>();
  for (const use of uses) sums.set(use.app, (sums.get(use.app) ?? 0) + use.sessions);
  return [...sums].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
