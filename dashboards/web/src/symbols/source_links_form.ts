// The form of the source links. Pure.

import type { Schemas } from '../api/client';
import type { Placeholder } from '../format/link_template';

export type Links = Schemas['SourceLinks'];
type NoLink = Schemas['NoSourceLink'];

export const MOST_RULES = 20;

export const EXAMPLES: { name: string; template: string }[] = [
  { name: 'GitHub', template: 'https://github.com/acme/shop/blob/v{version}/{path}#L{line}' },
  { name: 'GitLab', template: 'https://gitlab.com/acme/shop/-/blob/v{version}/{path}#L{line}' },
  { name: 'Bitbucket', template: 'https://bitbucket.org/acme/shop/src/v{version}/{path}#lines-{line}' },
];

/** Leaves out empty rules. */
export function documentOf({ template, rules }: Links): Links {
  return {
    template: template.trim(),
    rules: rules
      .filter(({ prefix, replacement }) => prefix !== '' || replacement !== '')
      .map(({ prefix, replacement }) => ({ prefix, replacement })),
  };
}

/** A copy that can be edited. */
export function fieldsOf(links: Links): Links {
  return documentOf(links);
}

export const PLACEHOLDERS: readonly Placeholder[] = [
  { name: '{path}', meaning: 'path in the repository' },
  { name: '{line}', meaning: 'line' },
  { name: '{version}', meaning: 'version of the app: for tags such as v4.12.0' },
  { name: '{build}', meaning: 'build number of the app' },
];

export function prefixFault({ prefix, replacement }: Links['rules'][number]): string {
  return prefix === '' && replacement !== '' ? 'Enter the beginning of a path.' : '';
}

const REASONS: Record<NoLink, string> = {
  no_template: 'Enter an address first.',
  no_file: 'This frame has no source file.',
  no_rule: 'No rule matches this path, so the frame has no link.',
  library: 'This file belongs to a library, so the frame has no link.',
  no_line: 'The address needs a line, and this frame has none.',
  no_version: 'The address needs a version. Frames without a version have no link.',
  no_build: 'The address needs a build number. Frames without a build number have no link.',
};

export function reasonText(reason: NoLink): string {
  return REASONS[reason];
}
