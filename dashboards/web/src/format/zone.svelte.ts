// The time zone of all times on the screen: the time zone of the browser, or UTC. The browser stores the choice.

const KEY = 'unjank-time-zone';
const UTC = 'UTC';
const DAY_MS = 86_400_000;

/** The IANA name of the time zone of the browser. */
export const browserZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
let name = $state(browserZone);

export const zone = {
  /** Formatted texts depend on this name, so that a change of the zone formats the texts again. */
  get name() {
    return name;
  },
  /** Shows all times in a zone, without storing the choice. */
  show(wanted: string) {
    name = wanted;
  },
  choose(wanted: string) {
    if (wanted === browserZone) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, wanted);
    name = wanted;
  },
};

export function startZone() {
  if (localStorage.getItem(KEY) === UTC) name = UTC;
}

const FIELDS: Intl.DateTimeFormatOptions = {
  hourCycle: 'h23',
  ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
  ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
};
const formats = new Map<string, Intl.DateTimeFormat>();

/** The offset of a zone from UTC at a time. */
export function offsetMinutes(at: Date, of = zone.name): number {
  if (of === UTC || Number.isNaN(at.getTime())) return 0;
  let format = formats.get(of);
  if (!format) formats.set(of, (format = new Intl.DateTimeFormat('en-US', { ...FIELDS, timeZone: of })));
  const field = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year, month, day, hour, minute, second } = field as Record<string, number>;
  const clock = Date.UTC(year!, month! - 1, day, hour, minute, second);
  return Math.round((clock - at.getTime()) / 60_000);
}

/** Converts a local time of the zone, given as a UTC time with the same clock fields, to the actual time. */
function whenClocksShow(clockMs: number): Date {
  const near = new Date(clockMs - offsetMinutes(new Date(clockMs)) * 60_000);
  return new Date(clockMs - offsetMinutes(near) * 60_000);
}

/** A date whose UTC fields are the local time of the zone. */
function clockFields(at: Date): Date {
  return new Date(at.getTime() + offsetMinutes(at) * 60_000);
}

/** A time as the value of an input of the type `datetime-local`. */
export function toInput(at: Date): string {
  return clockFields(at).toISOString().slice(0, 16);
}

/** Reads the time of an input of the type `datetime-local`, or of a day such as `2026-11-21`. Returns an invalid date for other texts. */
export function fromInput(text: string): Date {
  return whenClocksShow(Date.parse(`${text.includes('T') ? text : `${text}T00:00`}Z`));
}

/** The end of a day such as `2026-11-21`: the next midnight. */
export function endOfDay(day: string): Date {
  return whenClocksShow(Date.parse(`${day}T00:00Z`) + DAY_MS);
}

/** The midnights between two times. */
export function midnights(from: Date, to: Date): Date[] {
  const all: Date[] = [];
  const first = Math.floor(clockFields(from).getTime() / DAY_MS + 1) * DAY_MS;
  for (let clock = first; whenClocksShow(clock) < to; clock += DAY_MS) all.push(whenClocksShow(clock));
  return all;
}

/** `2026-11-21T15:05:09+01:00`: exact for programs, and readable in the zone. */
export function zonedTime(at: Date): string {
  if (Number.isNaN(at.getTime())) return '';
  const minutes = offsetMinutes(at);
  const text = clockFields(at).toISOString().replace('.000', '');
  return minutes === 0 ? text : text.replace('Z', `${minutes < 0 ? '-' : '+'}${hours(minutes, 2)}`);
}

/** `UTC+2`, `UTC−3:30`, `UTC`. */
export function offsetText(minutes: number): string {
  return minutes === 0 ? UTC : `UTC${minutes < 0 ? '−' : '+'}${hours(minutes, 1).replace(/:00$/, '')}`;
}

/** The offset and the name of a zone, such as `UTC+2, Europe/Berlin`. The offset is valid at the given time. */
export function zoneText(at: Date, of = zone.name): string {
  return of === UTC ? UTC : `${offsetText(offsetMinutes(at, of))}, ${of}`;
}

function hours(minutes: number, digits: number): string {
  const whole = Math.floor(Math.abs(minutes) / 60);
  return `${String(whole).padStart(digits, '0')}:${String(Math.abs(minutes) % 60).padStart(2, '0')}`;
}
