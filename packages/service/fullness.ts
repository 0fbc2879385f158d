// What a service's /health/ready says of a pool that is nearly full.

/** From here on operators are told, before many clients are refused. */
const NEARLY_FULL = 0.8

/**
 * @param what takes the bytes
 * @param setting which bounds them
 * @returns the problems: one, or none
 */
export const fullness = (what: string, bytes: number, { max, setting }: { max: number; setting: string }): string[] =>
  bytes > max * NEARLY_FULL ? [`${what} take ${bytes} of ${max} bytes (${setting})`] : []
