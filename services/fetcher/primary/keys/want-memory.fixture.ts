// Prints the bytes of heap that one want takes, for key-table.test.ts. In a process of its own: in that of a test,
// memory of other tests is given back in between.
import type { Namespace } from '@keycast/service'
import type { KeySource } from '../origins/origins.ts'
import { createEntry } from './entry.ts'
import { createInterest } from './interest.ts'

const [keys, links] = [500, 50]
const due = new Map()
const interest = createInterest({
  markDue: (link, key) => due.set(link, (due.get(link) ?? new Set()).add(key)),
  wheel: { set: () => ({ tick: 0, run() {} }), cancel() {} },
  now: () => 0,
})
const entries = Array.from({ length: keys }, (_, id) => newEntry(`doc:${id}`))
const before = bytesHeld()
for (const entry of entries) {
  for (let link = 0; link < links; link++) {
    // Each gateway's own strings, as they are parsed from its request.
    const version = Buffer.from(`${entry.key} of ${link}`.padEnd(22, '-')).toString()
    interest.watch(`link ${link}`, entry, { version, askedAt: Math.random() })
  }
  interest.notifyAll(entry)
}
const bytes = bytesHeld() - before
// The entries are held until here.
console.log(bytes / links / entries.length)

function bytesHeld() {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

function newEntry(key: string) {
  const namespace = { maxAgeMs: 1_000, urlFor: () => '' } as unknown as Namespace
  return createEntry(key, namespace, {} as KeySource)
}
