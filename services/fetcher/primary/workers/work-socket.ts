// The primary's socket to its workers; worker-messages.ts shows what it carries.
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWriter, receive } from '@keycast/backbone'
import { type Containment, noContainment, type World } from '@keycast/service'
import { Router } from 'zeromq'
import {
  batchPerTurn,
  type Credit,
  decodeFromWorker,
  encodeWork,
  type Lease,
  type Loaded,
  type ResultMessage,
} from '../../worker-messages.ts'

export type WorkSocket = Awaited<ReturnType<typeof bindWork>>

const DIRECTORY_PREFIX = 'keycast-work-'
const SOCKET_NAME = 'work'

/** A younger socket without a listener may be of a primary that is just starting, not of one that was killed. */
const LEFTOVER_MS_MIN = 60_000

interface Options extends World {
  onMessage: (
    routingId: Buffer,
    message: Credit | ResultMessage,
    body: Buffer | undefined,
    delta: Buffer | undefined,
  ) => void
  /** What this worker said could not be read, or not be taken. */
  onFailed?: (routingId: Buffer) => void
  /** The socket cannot be used any more. */
  onBroken: (error: Error) => void
  containment?: Containment
  /** Directory. */
  parent?: string
}

/**
 * Binds a fresh path, in a directory that only this user can enter: any process that could connect would be handed
 * leases, and the backends' credentials with them.
 */
export async function bindWork({
  onMessage,
  onFailed = () => {},
  onBroken,
  containment = noContainment,
  parent = tmpdir(),
  wallNow,
  turn,
}: Options) {
  await removeLeftovers(parent, wallNow())
  const directory = mkdtempSync(join(parent, DIRECTORY_PREFIX))
  chmodSync(directory, 0o700)
  const endpoint = `ipc://${join(directory, SOCKET_NAME)}`
  // `mandatory`: a lease for a worker that is gone fails instead of vanishing. No high-water mark: credit is the bound.
  const router = new Router({ mandatory: true, sendTimeout: 0, sendHighWaterMark: 0, linger: 0 })
  try {
    await router.bind(endpoint)
  } catch (error) {
    router.close()
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
  const remove = () => rmSync(directory, { recursive: true, force: true })
  // Runs however the process ends, if it can still do anything then.
  process.once('exit', remove)
  const writer = createWriter(router)
  let closed = false
  const batch = batchPerTurn(turn, (leases: Loaded<Lease>[], routingId: Buffer) => {
    // Leases that cannot be sent are for a worker that just ended: others get them when its end is noticed.
    if (!closed) writer.write([routingId, ...encodeWork(leases)], () => {})
  })

  const take = containment.guard(
    'worker',
    (routingId: Buffer, parts: Buffer[]) => {
      for (const { message, body, delta } of decodeFromWorker(parts)) onMessage(routingId, message, body, delta)
    },
    onFailed,
  )
  receive(router, ([routingId, ...parts]) => take(routingId, parts)).catch(error => {
    if (!closed) onBroken(error)
  })

  return {
    endpoint,

    /** @param routingId of a worker, always the same buffer */
    send(routingId: Buffer, lease: Lease, body?: Buffer) {
      batch.add({ message: lease, body }, routingId)
    },

    close() {
      closed = true
      // No unbind first: in libzmq 4.3.5 that can abort the process while a peer's pipe ends.
      router.close()
      process.off('exit', remove)
      remove()
    },
  }
}

/** Removes the sockets of primaries that were killed. */
async function removeLeftovers(parent: string, nowMs: number) {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(DIRECTORY_PREFIX)) continue
    const directory = join(parent, name)
    try {
      const { mtimeMs, uid } = statSync(directory)
      if (uid !== process.getuid?.() || nowMs - mtimeMs < LEFTOVER_MS_MIN) continue
      if (!(await isListenedTo(join(directory, SOCKET_NAME)))) rmSync(directory, { recursive: true, force: true })
    } catch (error) {
      // Another primary that starts removes the same files.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}

function isListenedTo(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', error => {
      const { code = '' } = error as NodeJS.ErrnoException
      resolve(!['ECONNREFUSED', 'ENOENT'].includes(code))
    })
  })
}
