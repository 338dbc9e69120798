// Axis ticks at round values of the displayed unit: 1 min and 2 min instead of 100 s and 200 s. Pure.

import { tidy, type Unit } from '../format/units';

/** A display unit: its size, its round steps, and the smallest value that is shown in this unit. */
interface Scale {
  from: number;
  size: number;
  steps: number[];
}

const DECIMAL = [1, 2, 2.5, 5, 10];
const SIXTIETHS = [1, 2, 5, 10, 15, 20, 30, 60];
const MS: Scale[] = [
  { from: 0, size: 0.001, steps: DECIMAL },
  { from: 1, size: 1, steps: DECIMAL },
  { from: 1000, size: 1000, steps: SIXTIETHS },
  { from: 60_000, size: 60_000, steps: SIXTIETHS },
  { from: 3_600_000, size: 3_600_000, steps: [1, 2, 3, 6, 12, 24] },
  { from: 172_800_000, size: 86_400_000, steps: DECIMAL },
];
const IN_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000 };

/** Returns ticks from 0 to the first tick that is not below `most`, with at most `count` steps. */
export function ticksTo(most: number, unit: Unit = 'count', count = 4): number[] {
  if (!(most > 0)) return [0, 1];
  const step = stepOf(most / count, most, unit);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  return Array.from({ length: steps + 1 }, (_, place) => tidy(place * step));
}

/** The smallest round step that is not below `least`. */
function stepOf(least: number, most: number, unit: Unit): number {
  const inMs = IN_MS[unit];
  if (inMs === undefined) return decimalStep(least, unit === 'count' ? 1 : 0);
  const scale = MS.findLast((one) => most * inMs >= one.from)!;
  const wanted = (least * inMs) / scale.size;
  // Outside of the listed steps, decimal steps are round: 0.5 min, 100 d.
  const step = wanted <= 0.5 ? decimalStep(wanted) : (scale.steps.find((one) => one >= wanted) ?? decimalStep(wanted));
  return (step * scale.size) / inMs;
}

function decimalStep(wanted: number, least = 0): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = DECIMAL.find((one) => one * power >= wanted - 1e-12 * power)! * power;
  // Steps of counts are whole numbers.
  return step < least ? least : least > 0 && !Number.isInteger(step) ? Math.ceil(step) : step;
}
