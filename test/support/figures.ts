// Prints what a test measures, for people to read: no test asserts a time.

/** @param {string} text */
export function show(text) {
  process.stdout.write(`  · ${text}\n`)
}

/** Milliseconds since a moment of performance.now(), for people. @param {number} startedAt */
export function msSince(startedAt) {
  return `${Math.round(performance.now() - startedAt)} ms`
}
