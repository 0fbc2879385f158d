// Durations, sizes and whole numbers as people write them in the environment and in keycast.yaml. Each rule reads a
// text and names the accepted form, so that every reader of a quantity refuses the same texts with the same error.
// CommonJS, because ecosystem.config.cjs needs it too: on Node 20 pm2 cannot load an ES module with require().

/**
 * @typedef {object} Rule
 * @property {(text: string) => number} read NaN if the text does not keep the rule
 * @property {string} expects completes "must be …"
 */

const durationGrammar = /^(\d{1,12})(ms|s|m|h|d)?$/
const sizeGrammar = /^(\d{1,15})(KiB|MiB|GiB)?$/
const integerGrammar = /^-?\d{1,15}$/

/** @type {Record<string, number>} */
const msPerUnit = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }
/** @type {Record<string, number>} */
const bytesPerUnit = { GiB: 1_024 ** 3, MiB: 1_024 ** 2, KiB: 1_024 }

/** setTimeout counts milliseconds in 31 bits and fires at once above. */
const MILLISECONDS_MAX = 2 ** 31 - 1

/**
 * A duration in milliseconds: `500ms`, `1s`, `2m`, `1h`, `7d`. Zero needs no unit. Another plain number is refused, because it
 * could be meant in seconds, unless the name carries the unit (`HEARTBEAT_MS=25000`).
 *
 * @param {object} [options]
 * @param {number} [options.minMs]
 * @param {number} [options.maxMs] the range of a timer, unless given
 * @param {boolean} [options.plainMs] whether a plain number counts milliseconds
 * @param {string} [options.zero] the meaning of 0, if it is accepted besides the range
 * @returns {Rule}
 */
function duration({ minMs = 0, maxMs = MILLISECONDS_MAX, plainMs = false, zero } = {}) {
  const bounds = range({ min: minMs, max: maxMs, unbounded: MILLISECONDS_MAX, show: showDuration })
  return {
    expects: `${plainMs ? 'milliseconds, or ' : ''}a duration such as 500ms or 2s${bounds}${zero ? `, or 0 (${zero})` : ''}`,
    read(text) {
      const [, amount, unit] = durationGrammar.exec(text) ?? []
      if (amount === undefined) return Number.NaN
      if (unit === undefined && !plainMs && Number(amount) !== 0) return Number.NaN
      const ms = Number(amount) * msPerUnit[unit ?? 'ms']
      if (zero !== undefined && ms === 0) return 0
      return within(ms, minMs, maxMs)
    },
  }
}

/**
 * A size in bytes: `1048576`, `64KiB`, `4MiB`, `1GiB` (IEC 80000-13: powers of 1,024).
 *
 * @param {{ minBytes?: number, maxBytes?: number }} [options]
 * @returns {Rule}
 */
function size({ minBytes = 0, maxBytes = Number.MAX_SAFE_INTEGER } = {}) {
  const bounds = range({ min: minBytes, max: maxBytes, unbounded: Number.MAX_SAFE_INTEGER, show: showSize })
  return {
    expects: `bytes, or a size such as 64KiB or 4MiB${bounds}`,
    read(text) {
      const [, amount, unit] = sizeGrammar.exec(text) ?? []
      if (amount === undefined) return Number.NaN
      return within(Number(amount) * (unit === undefined ? 1 : bytesPerUnit[unit]), minBytes, maxBytes)
    },
  }
}

/**
 * A whole number.
 *
 * @param {{ min?: number, max?: number, unit?: string }} [options] `unit`: the plural noun counted
 * @returns {Rule}
 */
function integer({ min = 0, max = Number.MAX_SAFE_INTEGER, unit } = {}) {
  const bounds = range({ min, max, unbounded: Number.MAX_SAFE_INTEGER, show: String })
  return {
    expects: `a whole number${unit ? ` of ${unit}` : ''}${bounds}`,
    read: text => (integerGrammar.test(text) ? within(Number(text), min, max) : Number.NaN),
  }
}

/**
 * A size in the largest unit that leaves a whole number, as {@link size} reads it.
 *
 * @param {number} bytes
 */
function showSize(bytes) {
  return inLargestUnit(bytes, bytesPerUnit)
}

/** The same for {@link duration}. @param {number} ms */
function showDuration(ms) {
  return inLargestUnit(ms, msPerUnit)
}

/** @param {number} amount @param {Record<string, number>} units from the largest */
function inLargestUnit(amount, units) {
  for (const [unit, worth] of Object.entries(units)) {
    if (amount > 0 && amount % worth === 0) return `${amount / worth}${unit}`
  }
  return String(amount)
}

/** @param {number} number @param {number} min @param {number} max */
function within(number, min, max) {
  return number >= min && number <= max ? number : Number.NaN
}

/** @param {{ min: number, max: number, unbounded: number, show: (value: number) => string }} bounds `unbounded`: the default, which is not told */
function range({ min, max, unbounded, show }) {
  if (max !== unbounded) return `, from ${show(min)} to ${show(max)}`
  return min > 0 ? `, at least ${show(min)}` : ''
}

module.exports = { duration, size, integer, showSize }
