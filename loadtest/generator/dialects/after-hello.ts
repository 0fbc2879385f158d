// Clients of a workload begin once their server has let them: until then they say what its dialect asks of them.
import type { Behaviour, ClientBehaviour } from '../clients.ts'
import { encodeFrame } from '../frames.ts'
import type { Dialect } from './dialect.ts'

/** @param behaviour its `open` is called when a client may begin */
export function afterHello(dialect: Dialect, behaviour: Behaviour, tallied: { unexpected: number }): Behaviour {
  return {
    ...behaviour,
    open(client, number, dialledUs) {
      const behaves: ClientBehaviour = {
        onMessage(head) {
          const hello = dialect.onHello(head)
          // In place: a further call for each message would cost a generator that reads a million a second.
          if (hello === 'ready') Object.assign(behaves, behaviour.open(client, number, dialledUs))
          else if (hello === undefined) tallied.unexpected += 1
          else client.send(encodeFrame(hello.reply))
        },
        onWhole: () => false,
        onEnd() {},
      }
      if (dialect.greeting !== undefined) client.send(encodeFrame(dialect.greeting))
      return behaves
    },
  }
}
