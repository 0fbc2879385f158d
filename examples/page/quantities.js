// Numbers as a person reads them.

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const wholeNumbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** @param {number} count @param {string} noun @param {string} [nouns] */
export function counted(count, noun, nouns = `${noun}s`) {
  return `${wholeNumbers.format(count)} ${count === 1 ? noun : nouns}`
}

/** @param {number} bytes in steps of 1,000, as networks count */
export function sized(bytes) {
  if (bytes < 1_000) return `${wholeNumbers.format(bytes)} B`
  if (bytes < 1_000_000) return `${numbers.format(bytes / 1_000)} KB`
  return `${numbers.format(bytes / 1_000_000)} MB`
}

/** @param {number} perSecond */
export function rated(perSecond) {
  return perSecond >= 10 ? wholeNumbers.format(perSecond) : numbers.format(perSecond)
}

/** @param {number} ms a duration in whole units: what is read at a glance has one */
export function lasted(ms) {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`
  return counted(Math.floor(seconds / 86_400), 'day')
}

/** @param {number} ms */
export function ago(ms) {
  return ms < 1_000 ? 'just now' : `${lasted(ms)} ago`
}
