// Describes missing symbols and symbol files. Pure.

import type { Schemas } from '../api/client';
import { format } from '../format/units';

export const STATES: Record<Schemas['SymbolState'], { text: string; kind: string; about: string }> = {
  missing: { text: 'missing', kind: 'bad', about: 'No file of this build was uploaded.' },
  mismatched: {
    text: 'wrong file',
    kind: 'bad',
    about: 'The uploaded file contains none of the frames, so it does not belong to this build.',
  },
  no_lines: { text: 'no lines', kind: 'warn', about: 'The uploaded file has functions, but no lines.' },
  complete: { text: 'complete', kind: 'good', about: 'The uploaded file has functions and lines.' },
};

/** The versions with stacks that need the symbols, and the number of their janks: `4.12.0 (12 k), 4.11.3 (7)`. */
export function versionsText(versions: Schemas['VersionCount'][]): string {
  return versions.map((one) => `${one.app_version || '(no version)'} (${format(one.events, 'count')})`).join(', ');
}

const FORMATS: Record<string, string> = {
  r8: 'R8 mapping',
  elf: 'ELF',
  mach_o: 'Mach-O',
  pdb: 'PDB',
  pe: 'PE',
  breakpad: 'Breakpad',
  wasm: 'WebAssembly',
  source_map: 'source map',
};

/** `ELF, x86_64`. */
export function kindText(builds: Schemas['SymbolBuild'][]): string {
  const formats = new Set(builds.map(({ format }) => FORMATS[format] ?? format));
  const archs = new Set(builds.map(({ arch }) => arch).filter(Boolean));
  return [...formats, ...archs].join(', ');
}

/** The missing parts of a file. Empty if the file has functions and lines. */
export function lacksText(builds: Schemas['SymbolBuild'][]): string {
  if (builds.length === 0 || builds.every(({ has_functions }) => !has_functions)) return 'no functions';
  return builds.some(({ has_lines }) => has_lines) ? '' : 'no lines';
}
