// Rates the longest run of dropped frames, in the levels of Tencent's Matrix. Pure.

export interface DropLevel {
  name: string;
  from: number;
}

export const DROP_LEVELS: DropLevel[] = [
  { name: 'frozen', from: 42 },
  { name: 'high', from: 24 },
  { name: 'middle', from: 9 },
  { name: 'normal', from: 3 },
  { name: 'best', from: 0 },
];

export function dropLevel(frames: number | null | undefined): string {
  if (frames === null || frames === undefined) return '';
  return DROP_LEVELS.find((level) => frames >= level.from)?.name ?? 'best';
}
