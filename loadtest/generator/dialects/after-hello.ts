// Clients of a workload begin once their server has let them: until then they say what its dialect asks of them.
import { encodeFrame } from '../frames.ts'

/**
 * @param {import('./dialect.ts').Dialect} dialect
 * @param {import('../clients.ts').Behaviour} behaviour its `open` is called when a client may begin
 * @param {{ unexpected: number }} tallied
 * @returns {import('../clients.ts').Behaviour}
 */
export function afterHello(dialect, behaviour, tallied) {
  return {
    ...behaviour,
    open(client, number, dialledUs) {
      /** @type {import('../clients.ts').ClientBehaviour} */
      const behaves = {
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
