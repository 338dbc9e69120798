import { expect, test } from 'vitest';
import { levelOf } from '../src/spans/levels';

test('durations on the main thread have a level from one frame on', () => {
  const labels = [15_999, 16_000, 99_999, 100_000, 700_000].map((us) => levelOf(us, 0.5)?.label);
  expect(labels).toEqual([undefined, 'over a frame', 'over a frame', 'stall', 'frozen']);
});

test('durations on other threads and unknown durations have no level', () => {
  expect(levelOf(900_000, 0.49)).toBeUndefined();
  expect(levelOf(900_000, null)).toBeUndefined();
  expect(levelOf(null, 1)).toBeUndefined();
});
