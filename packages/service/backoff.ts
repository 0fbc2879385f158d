// The wait after failures in a row: twice as long with each.

/**
 * @param failures one at least
 * @param random where many fail together: half of the wait is then left to chance, or they would come again together
 */
export const backoffMs = (
  failures: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
  random: () => number = () => 1,
) => (Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (1 + random())) / 2
