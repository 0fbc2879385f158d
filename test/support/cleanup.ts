// The list of things that a test file has opened. They are closed when the file ends, newest first.

/** @type {(() => unknown)[]} */
const steps = []

/**
 * Runs a step when the test file ends, whatever became of its tests.
 *
 * @param {() => unknown} step
 */
export function atEnd(step) {
  steps.push(step)
}

/** Runs every step; the first failure is thrown after all have run. */
export async function cleanUp() {
  const failures = []
  for (const step of steps.splice(0).reverse()) {
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
