// The commands of the palette, and the search for commands that match a text. Pure.

import { storedUuid } from '../format/uuid';

export interface Command {
  id: string;
  section: string;
  label: string;
  note?: string;
  /** Further words that find the command. */
  words?: string;
  run: () => void;
}

/** The maximum number of commands in a section while the user types. */
export const MOST_OF_SECTION = 6;

/** Commands that contain every word of the text. Labels that begin with the text come first. */
export function matching(commands: Command[], text: string, most = MOST_OF_SECTION): Command[] {
  const typed = text.trim().toLowerCase();
  if (typed === '') return commands;
  const words = typed.split(/\s+/);
  const whole = ({ label, note = '', words: more = '' }: Command) => `${label} ${note} ${more}`.toLowerCase();
  const rank = ({ label }: Command) => {
    const name = label.toLowerCase();
    if (name.startsWith(typed)) return 0;
    return name.includes(typed) ? 1 : 2;
  };
  return commands
    .filter((one) => words.every((word) => whole(one).includes(word)))
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, most);
}

/** Sorts spans by how well their names match a text: exact names first, then functions before requests, then the shortest names. */
export function bestSpans<Span extends { kind: string; name: string }>(spans: Span[], text: string): Span[] {
  const typed = text.trim().toLowerCase();
  const rank = ({ kind, name }: Span) => {
    if (name.toLowerCase() === typed) return 0;
    return kind === 'network' ? 2 : 1;
  };
  return spans.toSorted((a, b) => rank(a) - rank(b) || a.name.length - b.name.length);
}

export type Recognised = { kind: 'hex'; uuid: string; hex: string } | { kind: 'group'; id: string };

/** An id in a text. A UUID, with or without hyphens, may be a trace, a session or an install. A long number is a jank group. */
export function recognised(text: string): Recognised | null {
  const uuid = storedUuid(text);
  if (uuid) return { kind: 'hex', hex: uuid.replaceAll('-', ''), uuid };
  const typed = text.trim();
  return /^[1-9]\d{5,19}$/.test(typed) ? { kind: 'group', id: typed } : null;
}
