// Holds autocannon's connections at a request a second while they are opened. Connections that ask as fast as they are
// answered keep a server busy, and libuv accepts one connection in each turn of its loop: the last of thousands would
// wait for minutes, and the kernel resets those that wait too long.
// autocannon's own `connectionRate` holds for the whole run; so this sets the fields of its clients behind that option
// (autocannon 9.0.0, lib/httpClient.js).
import type autocannon from 'autocannon'

interface PacedClient {
  /** Requests a second; 0: as fast as the answers come. */
  rate: number
  /** Lets the client ask again each second. */
  rateInterval: NodeJS.Timeout
  /** It would have asked already, and waits for the next second. */
  paused: boolean
  _doRequest(): void
}

export function createPace() {
  const clients: PacedClient[] = []
  return {
    /** @param client from autocannon's `setupClient`, which is called before the client looks at its rate */
    hold(client: autocannon.Client) {
      const paced = client as unknown as PacedClient
      paced.rate = 1
      clients.push(paced)
    },

    /** From now on all clients ask as soon as they are answered. */
    release() {
      for (const client of clients.splice(0)) {
        clearInterval(client.rateInterval)
        client.rate = 0
        if (!client.paused) continue
        client.paused = false
        client._doRequest()
      }
    },
  }
}
