// Prints what a test measures, for people to read: no test asserts a time.

export function show(text: string) {
  process.stdout.write(`  · ${text}\n`)
}

/** Milliseconds since a moment of performance.now(), for people. */
export function msSince(startedAt: number) {
  return `${Math.round(performance.now() - startedAt)} ms`
}
