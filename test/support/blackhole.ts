// A TCP proxy that can go silent in both directions with its connections left open, and recover later.
//
// Two kinds of silence. `hold`: nothing gets through, as when a cable is pulled; what was sent arrives after mending,
// as TCP sends it again. `drop`: whole ZeroMQ messages vanish, so that both ends go on with a gap neither was told of; of
// another protocol (`isPlain`) nothing can be dropped.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atEnd } from './cleanup.ts'
import { createMessageSplitter } from './zmtp.ts'

const asItCame = (chunk: Buffer) => [{ bytes: chunk, droppable: false }]

/**
 * @param target the port behind
 * @param options `isPlain`: what goes through is not ZeroMQ's
 */
export async function startBlackhole(target: number, { isPlain = false }: { isPlain?: boolean } = {}) {
  let mode: 'open' | 'hold' | 'drop' = 'open'
  const sockets = new Set<Socket>()
  const releases = new Set<() => void>()
  let swallowed = 0

  const pass = (from: Socket, to: Socket) => {
    let held: Buffer[] = []
    const split = isPlain ? asItCame : createMessageSplitter()
    releases.add(() => {
      for (const chunk of held.splice(0)) to.write(chunk)
    })
    from.on('data', chunk => {
      for (const { bytes, droppable } of split(chunk)) {
        if (mode === 'open' || (mode === 'drop' && !droppable)) to.write(bytes)
        else swallowed += 1
        if (mode === 'hold') held.push(bytes)
      }
    })
    from.on('close', () => {
      sockets.delete(from)
      held = []
      to.destroy()
    })
    from.on('error', () => to.destroy())
  }

  const server = createServer(near => {
    const far = connect(target, '127.0.0.1')
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      sockets.add(socket)
    }
    pass(near, far)
    pass(far, near)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })

  return {
    port: (server.address() as AddressInfo).port,
    swallow(how: 'hold' | 'drop') {
      mode = how
    },
    mend() {
      mode = 'open'
      for (const release of releases) release()
    },
    /**
     * The number of messages (or the parts of them that arrived at once) that did not get through when they were sent.
     */
    swallowed: () => swallowed,
  }
}
