// Decides which clients may connect: the ZAP handler (RFC 27/ZAP). CURVE alone admits every client that knows the
// server's public key; libzmq asks this handler, in the same process, about each client's own key.
import { Router } from 'zeromq'
import { encodeZ85 } from './curve.ts'
import type { Refusals } from './refusals.ts'
import { createWriter, receive } from './socket.ts'

/** libzmq knows no other address for the handler; so there is one for all sockets of a process. */
const ENDPOINT = 'inproc://zeromq.zap.01'

/**
 * Answers libzmq's questions until closed. Must be bound before the sockets it guards, which set a `zapDomain`.
 *
 * @param options public keys in Z85
 */
export async function startZap({
  clientKeys,
  refuse,
}: {
  clientKeys: Iterable<string>
  refuse: Refusals
}): Promise<{ close: () => Promise<void> }> {
  const allowed = new Set(clientKeys)
  const router = new Router({ linger: 0 })
  await router.bind(ENDPOINT)
  const writer = createWriter(router)

  const loop = receive(router, ([routingId, , version, request, , address, , mechanism, credential]) => {
    const key = mechanism?.toString() === 'CURVE' && credential?.length === 32 ? encodeZ85(credential) : undefined
    const known = key !== undefined && allowed.has(key)
    if (!known) refuse({ address: String(address), key }, 'a client whose key is not allowed was refused')
    const [code, text] = known ? ['200', 'OK'] : ['400', 'the key is not allowed']
    const reply = ['', version, request, code, text, known ? key : '', ''].map(part => Buffer.from(part))
    writer.write([routingId, ...reply], () => {})
  })

  return {
    async close() {
      router.close()
      await loop
    },
  }
}
