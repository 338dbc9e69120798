// The order of versions: 4.9 before 4.10, a release candidate before its release. Pure.

interface Parsed {
  numbers: number[];
  pre: string[];
}

function parse(version: string): Parsed | null {
  const found = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(version.trim());
  if (!found) return null;
  return { numbers: found[1]!.split('.').map(Number), pre: found[2]?.split('.') ?? [] };
}

/** Negative if `a` is older. Texts that are not versions come before all versions, in alphabetical order. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parse(a), parse(b)];
  if (!left || !right) return Number(left !== null) - Number(right !== null) || (a < b ? -1 : Number(a > b));
  for (let place = 0; place < Math.max(left.numbers.length, right.numbers.length); place += 1) {
    const by = (left.numbers[place] ?? 0) - (right.numbers[place] ?? 0);
    if (by !== 0) return by;
  }
  if (left.pre.length === 0 || right.pre.length === 0)
    return Number(left.pre.length === 0) - Number(right.pre.length === 0);
  for (let place = 0; place < Math.max(left.pre.length, right.pre.length); place += 1) {
    const [one, other] = [left.pre[place], right.pre[place]];
    if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined);
    const by = comparePart(one, other);
    if (by !== 0) return by;
  }
  return 0;
}

function comparePart(a: string, b: string): number {
  const [isNumber, otherIsNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumber && otherIsNumber) return Number(a) - Number(b);
  if (isNumber !== otherIsNumber) return isNumber ? -1 : 1;
  return a < b ? -1 : Number(a > b);
}

export interface VersionUse {
  app: string;
  version: string;
  sessions: number;
}

export interface VersionPair {
  app: string;
  latest: string;
  /** Empty if there is no older version. */
  previous: string;
  /** Of the same app, oldest first. */
  all: string[];
}

/** Versions with fewer sessions are not compared by default, because they may be builds of a developer. */
export const MIN_SESSIONS = 20;

/**
 * The versions to compare: of the app used most, the latest version and the previous one. The version, base and
 * app that the reader chose take precedence.
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
