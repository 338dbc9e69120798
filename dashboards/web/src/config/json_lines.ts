// Finds the lines of values in a JSON text, so that a fault is shown at its line. Pure.

/**
 * Returns the line number of each path, such as `sampling.janks` or `pages[2].api`. Lines count from 1. The empty path is the whole text.
 */
export function jsonLines(text: string): Map<string, number> {
  const lines = new Map<string, number>([['', 1]]);
  let at = 0;
  let line = 1;

  function space() {
    while (at < text.length && /\s/.test(text[at]!)) {
      if (text[at] === '\n') line += 1;
      at += 1;
    }
  }
  function string(): string {
    const start = at;
    at += 1;
    while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at += 1;
    try {
      return JSON.parse(text.slice(start, at)) as string;
    } catch {
      return '';
    }
  }
  function members(path: string) {
    at += 1;
    for (space(); at < text.length && text[at] !== '}'; space()) {
      if (text[at] !== '"') {
        at += 1;
        continue;
      }
      const where = line;
      const key = string();
      const inner = path ? `${path}.${key}` : key;
      lines.set(inner, where);
      space();
      if (text[at] === ':') at += 1;
      value(inner);
      space();
      if (text[at] === ',') at += 1;
    }
    at += 1;
  }
  function elements(path: string) {
    at += 1;
    let index = 0;
    for (space(); at < text.length && text[at] !== ']'; space()) {
      lines.set(`${path}[${index}]`, line);
      const before = at;
      value(`${path}[${index}]`);
      space();
      if (text[at] === ',') at += 1;
      else if (at === before) at += 1;
      index += 1;
    }
    at += 1;
  }
  function value(path: string) {
    space();
    if (text[at] === '{') members(path);
    else if (text[at] === '[') elements(path);
    else if (text[at] === '"') string();
    else while (at < text.length && !/[\s,\]}]/.test(text[at]!)) at += 1;
  }

  value('');
  return lines;
}

/** The line of a path, or of its closest ancestor in the text. */
export function lineOf(path: string, lines: Map<string, number>): number {
  for (let rest = path; ; rest = rest.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[\]]+)$/, '')) {
    const found = lines.get(rest);
    if (found !== undefined) return found;
    if (rest === '' || !/(\.[^.[\]]*|\[\d+\]|^[^.[\]]+)$/.test(rest)) return 1;
  }
}

/** The line and message of the first syntax error. `null` if the text is valid JSON. */
export function jsonFault(text: string): { line: number; message: string } | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const message = (error as Error).message;
    const named = /line (\d+)/.exec(message);
    const position = /position (\d+)/.exec(message);
    let line = text.split('\n').length;
    if (named) line = Number(named[1]);
    else if (position) line = text.slice(0, Number(position[1])).split('\n').length;
    return { line, message: `invalid JSON: ${message.replace(/ in JSON at position.*| \(line.*\)/, '')}` };
  }
}
