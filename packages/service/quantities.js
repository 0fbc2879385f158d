// How people write durations and sizes, in the environment and in keycast.yaml.

const durationGrammar = /^(\d{1,12})(ms|s|m|h|d)?$/
const sizeGrammar = /^(\d{1,15})(KiB|MiB|GiB)?$/

/** @type {Record<string, number>} */
const msPerUnit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** @type {Record<string, number>} */
const bytesPerUnit = { KiB: 1_024, MiB: 1_024 ** 2, GiB: 1_024 ** 3 }

/**
 * The milliseconds of `500ms`, `1s`, `2m`, `1h`, `7d`. Zero needs no unit; another bare number is milliseconds only where
 * `bareMs` says that the name already carries the unit (`HEARTBEAT_MS=25000`).
 *
 * @param {string} text
 * @param {{ bareMs: boolean }} options
 * @returns {number} NaN where the text is no duration
 */
export function readDuration(text, { bareMs }) {
  const [, amount, unit] = durationGrammar.exec(text) ?? []
  if (amount === undefined) return Number.NaN
  if (unit === undefined && !bareMs && Number(amount) !== 0) return Number.NaN
  return Number(amount) * msPerUnit[unit ?? 'ms']
}

/**
 * The bytes of `1048576`, `64KiB`, `4MiB`, `1GiB` (IEC 80000-13: powers of 1,024).
 *
 * @param {string} text
 * @returns {number} NaN where the text is no size
 */
export function readSize(text) {
  const [, amount, unit] = sizeGrammar.exec(text) ?? []
  if (amount === undefined) return Number.NaN
  return Number(amount) * (unit === undefined ? 1 : bytesPerUnit[unit])
}

/**
 * A size as {@link readSize} reads it, in the largest unit that leaves a whole number.
 *
 * @param {number} bytes
 */
export function showSize(bytes) {
  for (const unit of ['GiB', 'MiB', 'KiB']) {
    if (bytes > 0 && bytes % bytesPerUnit[unit] === 0) return `${bytes / bytesPerUnit[unit]}${unit}`
  }
  return String(bytes)
}
