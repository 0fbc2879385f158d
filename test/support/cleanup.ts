// The list of things that a test file has opened. They are closed when the file ends, newest first.

const steps: (() => unknown)[] = []

/** Runs a step when the test file ends, whatever became of its tests. */
export function atEnd(step: () => unknown) {
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
