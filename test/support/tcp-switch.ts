// A TCP address that leads to whichever port it is told: a primary's after a failover, or none.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atEnd } from './cleanup.ts'

/** @param target port on this host */
export async function startSwitch(target: number) {
  const sockets = new Set<Socket>()
  /** Of what becomes of them, their other ends are not told. */
  const silenced = new WeakSet<Socket>()
  let isSilent = false
  let bytesBack = 0

  const server = createServer(near => {
    if (isSilent) {
      sockets.add(near)
      near.on('error', () => {})
      return
    }
    const far = connect(target, '127.0.0.1')
    far.on('data', bytes => {
      bytesBack += bytes.length
    })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        if (!silenced.has(from)) to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))

  function cut() {
    for (const socket of sockets) socket.destroy()
  }
  atEnd(() => {
    cut()
    return new Promise(resolve => server.close(resolve))
  })
  return {
    port: (server.address() as AddressInfo).port,
    /** The number of bytes that the target has sent so far. */
    bytesBack: () => bytesBack,
    /** Ends every connection. New ones are made at once. */
    cut,
    /**
     * Nothing gets through any more, and neither end is told, as where a laptop leaves a network. Connections stay silent
     * for ever; those made after `mend` are well.
     */
    silence() {
      isSilent = true
      for (const socket of sockets) {
        silenced.add(socket)
        socket.unpipe()
        socket.pause()
      }
    },
    mend() {
      isSilent = false
    },
    /** @param other port on this host */
    leadTo(other: number) {
      target = other
      cut()
    },
  }
}
