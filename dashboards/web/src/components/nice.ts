/** Where a scale ends: above the value, and round, so that its halves and quarters are round too. Pure. */
export function nice(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return (([1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10) as number) * power;
}
