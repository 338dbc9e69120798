// Address templates that lead to other systems. Pure.

/** A placeholder, such as `{path}`, and its meaning. */
export interface Placeholder {
  readonly name: string;
  readonly meaning: string;
}

/** The fault of a template, as far as the browser can check. The first placeholder is required. The server checks the rest. */
export function templateFault(template: string, placeholders: readonly Placeholder[]): string {
  const text = template.trim();
  if (text === '') return '';
  if (!/^https?:\/\/[^/{}]+\//.test(text)) return 'Start with https:// or http://, a host and /.';
  const names = placeholders.map(({ name }) => name);
  const unknown = (text.match(/\{[^}]*\}?|\}/g) ?? []).find((one) => !names.includes(one));
  if (unknown) return `${unknown} is not a placeholder. Use ${names.join(', ')}.`;
  const required = names[0] ?? '';
  return text.includes(required) ? '' : `Add ${required}.`;
}
