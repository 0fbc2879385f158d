// The list of things that a test file has opened. They are closed when the file ends, newest first.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const steps: (() => unknown)[] = []

/** Runs a step when the test file ends, whatever became of its tests. */
export function atEnd(step: () => unknown) {
  steps.push(step)
}

/** @returns a new folder, with a path short enough for sockets. It is gone when the test file ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-test-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
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
