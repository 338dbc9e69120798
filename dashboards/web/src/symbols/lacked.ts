// The builds whose symbols are missing for a stack. Pure.

import type { Schemas } from '../api/client';

type Frame = Pick<Schemas['FrameBody'], 'class' | 'module' | 'file' | 'build_id' | 'offset'>;

export interface Lacking {
  frames: Frame[];
  missing: string[];
  mismatched: string[];
}

export interface LackedBuild {
  id: string;
  kind: 'mapping' | 'script' | 'image';
  /** The modules or scripts of the frames that need the symbols. */
  modules: string[];
  isWrong: boolean;
}

/** An id in the notation of the server: in lower case, without dashes. */
export function plainId(id: string): string {
  return id.replaceAll('-', '').toLowerCase();
}

const MAPPING = 'r8-map-id-';

function isOf(frame: Frame, id: string): boolean {
  return plainId(frame.build_id) === id || (frame.file.startsWith(MAPPING) && frame.file.slice(MAPPING.length) === id);
}

function kindOf(frames: Frame[]): LackedBuild['kind'] {
  if (frames.some((frame) => frame.class !== '')) return 'mapping';
  // Native frames have an offset, and frames of scripts have a line.
  return frames.length > 0 && frames.every((frame) => frame.offset === 0) ? 'script' : 'image';
}

function nameOf(frame: Frame): string {
  return frame.module || (frame.offset === 0 ? frame.file.split('/').at(-1)! : '');
}

export function lackedBuilds({ frames, missing, mismatched }: Lacking): LackedBuild[] {
  const build = (id: string): LackedBuild => {
    const of = frames.filter((frame) => isOf(frame, id));
    return {
      id,
      kind: kindOf(of),
      modules: [...new Set(of.filter((frame) => frame.class === '').map(nameOf))].filter(Boolean),
      isWrong: mismatched.includes(id),
    };
  };
  return [...new Set([...mismatched, ...missing])].map(build);
}

/** Shortens long ids to their first characters, which are enough to distinguish ids. */
export function shortId(id: string): string {
  return id.length > 16 ? `${id.slice(0, 12)}…` : id;
}

/** Merges the stacks of one event, so that each build is listed once. */
export function together(stacks: Lacking[]): Lacking {
  return {
    frames: stacks.flatMap(({ frames }) => frames),
    missing: [...new Set(stacks.flatMap(({ missing }) => missing))],
    mismatched: [...new Set(stacks.flatMap(({ mismatched }) => mismatched))],
  };
}
