// The builds whose symbols a stack lacks, and how they are called. Pure.

import type { Schemas } from '../api/client';

type Frame = Pick<Schemas['FrameBody'], 'class' | 'module' | 'file' | 'build_id'>;

export interface Lacking {
  frames: Frame[];
  missing: string[];
  mismatched: string[];
}

export interface LackedBuild {
  id: string;
  kind: 'mapping' | 'image';
  /** The modules of the frames that need the symbols. */
  modules: string[];
  isWrong: boolean;
}

/** As the server writes ids: in lower case, without dashes. */
export function plainId(id: string): string {
  return id.replaceAll('-', '').toLowerCase();
}

const MAPPING = 'r8-map-id-';

function isOf(frame: Frame, id: string): boolean {
  return plainId(frame.build_id) === id || (frame.file.startsWith(MAPPING) && frame.file.slice(MAPPING.length) === id);
}

export function lackedBuilds({ frames, missing, mismatched }: Lacking): LackedBuild[] {
  const build = (id: string): LackedBuild => {
    const of = frames.filter((frame) => isOf(frame, id));
    return {
      id,
      kind: of.some((frame) => frame.class !== '') ? 'mapping' : 'image',
      modules: [...new Set(of.map((frame) => frame.module))].filter(Boolean),
      isWrong: mismatched.includes(id),
    };
  };
  return [...new Set([...mismatched, ...missing])].map(build);
}

/** Long ids differ in their first characters. */
export function shortId(id: string): string {
  return id.length > 16 ? `${id.slice(0, 12)}…` : id;
}

/** Each build once, of the stacks of one event. */
export function together(stacks: Lacking[]): Lacking {
  return {
    frames: stacks.flatMap(({ frames }) => frames),
    missing: [...new Set(stacks.flatMap(({ missing }) => missing))],
    mismatched: [...new Set(stacks.flatMap(({ mismatched }) => mismatched))],
  };
}
