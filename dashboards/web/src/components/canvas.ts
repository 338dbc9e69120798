// Shared by all charts on a canvas.

import { colour } from '../layout/theme.svelte';

/** Sizes a canvas for the screen and clears the canvas. Afterwards, the context counts in CSS pixels. */
export function contextOf(
  canvas: HTMLCanvasElement | undefined,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const context = canvas?.getContext('2d');
  if (!canvas || !context) return null;
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.textBaseline = 'middle';
  return context;
}

/** Reads each colour of the page only once per painting, because reading one is slow. */
export function colours(): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    if (!known.has(name)) known.set(name, colour(name));
    return known.get(name)!;
  };
}
