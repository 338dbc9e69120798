// Evidence as Markdown for an issue. Escapes all names, because names come from apps and may be hostile. Pure.

export interface Evidence {
  title: string;
  /** Paths of this interface, with fixed times. */
  links: { label: string; path: string }[];
  /** Sentences below the title. */
  about?: string[];
  /** Labels with their values, a line each. Empty values are left out. */
  facts: [label: string, value: string | null | undefined][];
  table?: { head: string[]; rows: string[][] };
  /** Frames of a stack, innermost first, a line each. */
  stack?: { title: string; lines: string[] };
  /** Oldest first: the author and the time, and the text with its lines. */
  comments?: { about: string; text: string }[];
}

const LONGEST = 500;
export const MOST_ROWS = 50;
const MOST_FRAMES = 40;
const MOST_COMMENTS = 50;
const LONGEST_COMMENT = 2000;

export function markdown(evidence: Evidence, origin: string): string {
  const { title, links, about = [], facts, table, stack, comments = [] } = evidence;
  const known = facts.filter(([, value]) => value);
  const blocks = [
    `## ${escaped(title)}`,
    ...about.filter(Boolean).map((line) => paragraph(line)),
    known.map(([label, value]) => `- **${escaped(label)}:** ${escaped(value!)}`).join('\n'),
    table && table.rows.length > 0 ? tableOf(table) : '',
    stack && stack.lines.length > 0 ? `**${escaped(stack.title)}**\n\n${codeBlock(stack.lines)}` : '',
    commentsOf(comments),
    links.map(({ label, path }) => `- [${escaped(label)}](${address(path, origin)})`).join('\n'),
  ];
  return `${blocks.filter(Boolean).join('\n\n')}\n`;
}

/** Text on one line, without links, images, mentions, HTML or headings. */
export function escaped(text: string, longest = LONGEST): string {
  const line = text
    .replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, ' ')
    // Characters that reverse the direction of the text.
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
    .trim();
  const short = line.length > longest ? `${line.slice(0, longest)}…` : line;
  return (
    short
      .replace(/[\\`*_[\]<>|~&#]/g, '\\$&')
      // Many sites turn bare URLs and mentions into links.
      .replace(/:\/\//g, ':\u200b//')
      .replace(/\bwww\./gi, (www) => `${www.slice(0, -1)}\u200b.`)
      .replace(/@(?=\w)/g, '@\u200b')
  );
}

/** Escaped text at the beginning of a line, where it must also not form a list, a rule or a heading. */
export function paragraph(text: string, longest = LONGEST): string {
  return escaped(text, longest)
    .replace(/^([-+=])/, '\\$1')
    .replace(/^(\d+)([.)])/, '$1\\$2');
}

/** A code block. Its fence is longer than any fence in the text. */
export function codeBlock(lines: string[]): string {
  const shown = lines.slice(0, MOST_FRAMES);
  if (lines.length > shown.length) shown.push(`… ${lines.length - shown.length} more`);
  const text = shown.map((line) => line.replace(/[\u0000-\u0008\u000a-\u001f\u007f\u202a-\u202e\u2066-\u2069]+/g, ' '));
  const longest = Math.max(2, ...text.flatMap((line) => [...line.matchAll(/`+/g)].map(([run]) => run.length)));
  const fence = '`'.repeat(longest + 1);
  return [fence, ...text, fence].join('\n');
}

/** The latest comments as quotes, a paragraph per line. */
function commentsOf(comments: NonNullable<Evidence['comments']>): string {
  const shown = comments.slice(-MOST_COMMENTS);
  if (shown.length === 0) return '';
  const earlier = comments.length - shown.length;
  const quotes = shown.map(({ about, text }) => {
    const lines = text.split(/[\n\r\u2028\u2029]+/).map((line) => paragraph(line, LONGEST_COMMENT));
    return [`**${escaped(about)}**`, ...lines.filter(Boolean)].map((line) => `> ${line}`).join('\n>\n');
  });
  return [
    '**Comments**',
    ...(earlier > 0 ? [`${earlier} earlier ${earlier === 1 ? 'comment is' : 'comments are'} left out.`] : []),
    ...quotes,
  ].join('\n\n');
}

function tableOf({ head, rows }: { head: string[]; rows: string[][] }): string {
  const row = (cells: string[]) => `| ${cells.map((cell) => escaped(cell) || ' ').join(' | ')} |`;
  const line = `| ${head.map(() => '---').join(' | ')} |`;
  return [row(head), line, ...rows.slice(0, MOST_ROWS).map(row)].join('\n');
}

/** A URL of this server, with escaped brackets, because a bracket would end the link. */
function address(path: string, origin: string): string {
  const url = new URL(path, origin);
  const inside = url.origin === new URL(origin).origin ? url : new URL(origin);
  return inside.href.replace(/[()]/g, (bracket) => `%${bracket.charCodeAt(0).toString(16)}`);
}
