import { describe, expect, it } from 'vitest';
import { lackedBuilds, plainId, shortId, together } from '../src/symbols/lacked';
import { kindText, lacksText, versionsText } from '../src/symbols/missing_text';
import { documentOf, prefixFault } from '../src/symbols/source_links_form';
import { recipes, tokenCommand } from '../src/symbols/upload_text';

const ID = '67e9a1b2c3d4e5f60718293a4b5c6d7e8f901234';
const native = {
  class: '',
  module: 'libshop.so',
  file: '',
  offset: 4096,
  build_id: '67E9A1B2-C3D4-E5F6-0718-293A4B5C6D7E8F901234',
};
const obfuscated = { class: 'a.b', module: '', file: 'r8-map-id-5a7d1b0c', offset: 0, build_id: '' };
const other = { class: 'java.util.Arrays', module: '', file: 'Arrays.java', offset: 0, build_id: '' };

describe('lacked symbols', () => {
  it('are named after the modules of the frames that need them', () => {
    const lacking = { frames: [other, native, native], missing: [ID], mismatched: [] };
    expect(lackedBuilds(lacking)).toEqual([{ id: ID, kind: 'image', modules: ['libshop.so'], isWrong: false }]);
  });

  it('are mappings, if the frames are of obfuscated classes', () => {
    const lacking = { frames: [other, obfuscated], missing: [], mismatched: ['5a7d1b0c'] };
    expect(lackedBuilds(lacking)).toEqual([{ id: '5a7d1b0c', kind: 'mapping', modules: [], isWrong: true }]);
  });

  it('are source maps, if the frames are of scripts', () => {
    const script = { class: '', module: '', file: 'https://shop.example/app.js', offset: 0, build_id: '5a7d1b0c' };
    const lacking = { frames: [script], missing: ['5a7d1b0c'], mismatched: [] };
    expect(lackedBuilds(lacking)).toEqual([{ id: '5a7d1b0c', kind: 'script', modules: ['app.js'], isWrong: false }]);
    // Without frames, as in a truncated stack, only the id is known.
    expect(lackedBuilds({ ...lacking, frames: [] })).toMatchObject([{ kind: 'image', modules: [] }]);
  });

  it('are listed once, wrong files first', () => {
    const stack = { frames: [native], missing: [ID], mismatched: [] };
    const sample = { frames: [obfuscated], missing: [ID], mismatched: ['5a7d1b0c'] };
    const builds = lackedBuilds(together([stack, sample]));
    expect(builds.map(({ id }) => id)).toEqual(['5a7d1b0c', ID]);
    expect(lackedBuilds({ frames: [native], missing: [], mismatched: [] })).toEqual([]);
  });

  it('have ids as the server writes them', () => {
    expect(plainId(native.build_id)).toBe(ID);
    expect(shortId(ID)).toBe('67e9a1b2c3d4…');
    expect(shortId('5a7d1b0c')).toBe('5a7d1b0c');
  });
});

describe('symbol files in words', () => {
  const build = (format: string, arch: string, has_functions: boolean, has_lines: boolean) => ({
    ...{ id: ID, name: '', format, arch, has_functions, has_lines },
  });

  it('have a description', () => {
    expect(kindText([build('elf', 'x86_64', true, true)])).toBe('ELF, x86_64');
    expect(kindText([build('mach_o', 'arm64', true, true), build('mach_o', 'x86_64', true, true)])).toBe(
      'Mach-O, arm64, x86_64',
    );
    expect(kindText([build('r8', '', true, true)])).toBe('R8 mapping');
    expect(kindText([build('new', '', true, true)])).toBe('new');
  });

  it('name what they lack', () => {
    expect(lacksText([build('elf', '', true, true)])).toBe('');
    expect(lacksText([build('elf', '', true, false)])).toBe('no lines');
    expect(lacksText([build('elf', '', false, false)])).toBe('no functions');
    expect(lacksText([])).toBe('no functions');
  });

  it('list the versions that wait for them', () => {
    const versions = [
      { app_version: '4.12.0', events: 20 },
      { app_version: '', events: 1 },
    ];
    expect(versionsText(versions)).toBe('4.12.0 (20), (no version) (1)');
  });
});

describe('commands that upload', () => {
  it('have the server and the project', () => {
    for (const { text } of recipes('https://unjank.example.com', 'shop')) {
      expect(text).toContain('https://unjank.example.com');
      expect(text).toContain('shop');
      expect(text).not.toContain('undefined');
    }
    expect(tokenCommand('shop')).toContain('--project shop --only-symbols');
  });
});

describe('the form of source links', () => {
  it('leaves empty rules out', () => {
    const rules = [
      { prefix: '/builds/', replacement: '' },
      { prefix: '', replacement: '' },
      { prefix: '', replacement: 'src/' },
    ];
    expect(documentOf({ template: ' x ', rules })).toEqual({ template: 'x', rules: [rules[0], rules[2]] });
    expect(rules.map(prefixFault)).toEqual(['', '', 'Enter the beginning of a path.']);
  });
});
