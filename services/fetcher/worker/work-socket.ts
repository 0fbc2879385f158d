// A worker's socket to its primary; worker-messages.ts shows what it carries.
import { createWriter, receive } from '@keycast/backbone'
import type { World } from '@keycast/service'
import { Dealer } from 'zeromq'
import {
  batchPerTurn,
  type Credit,
  decodeLeases,
  encodeWork,
  type Lease,
  type Loaded,
  type ResultMessage,
} from '../worker-messages.ts'

export interface WorkSocket {
  /** Resolves once the socket has taken it; the credit given bounds what is queued until then. */
  send: (message: Credit | ResultMessage, body?: Buffer, delta?: Buffer) => Promise<void>
  /** Messages that the primary has not read are lost. */
  close: () => void
}

type Sending = Loaded<Credit | ResultMessage> & { taken: () => void }

interface Options {
  turn: World['turn']
  endpoint: string
  /** Must return soon: the next lease waits for it. An error that it throws breaks the socket. */
  onLease: (lease: Lease, body: Buffer | undefined) => void
  /** The socket cannot be used any more. */
  onBroken: (error: Error) => void
}

export function openWorkSocket({ endpoint, onLease, onBroken, turn }: Options): WorkSocket {
  // No routing id: a reused one can stay deaf for ever. Linger 0: a primary that ends a worker reads nothing more.
  const dealer = new Dealer({ linger: 0 })
  let closed = false
  dealer.connect(endpoint)
  const writer = createWriter(dealer)
  const batch = batchPerTurn(turn, (sendings: Sending[]) => {
    if (closed) return
    writer.write(encodeWork(sendings), error => {
      if (error) broken(error)
      for (const { taken } of sendings) taken()
    })
  })

  const broken = (error: Error) => {
    if (!closed) onBroken(error)
  }
  receive(dealer, parts => {
    for (const { message, body } of decodeLeases(parts)) onLease(message, body)
  }).catch(broken)

  return {
    send: (message, body, delta) =>
      new Promise(taken => {
        batch.add({ message, body, delta, taken }, undefined)
      }),

    close() {
      closed = true
      dealer.close()
    },
  }
}
