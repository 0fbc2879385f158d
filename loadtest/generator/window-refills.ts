// The messages that clients with a window owe: one for each that was answered. Those of a turn leave together.

/**
 * @param pay sends so many of a client
 * @returns notes one more of it
 */
export function createWindowRefills<Owing extends { owed: number }>(pay: (client: Owing, count: number) => void) {
  let owing: Owing[] = []

  function payAll() {
    const paying = owing
    owing = []
    for (const client of paying) {
      const { owed } = client
      client.owed = 0
      pay(client, owed)
    }
  }

  return (client: Owing) => {
    if (client.owed === 0 && owing.push(client) === 1) setImmediate(payAll)
    client.owed += 1
  }
}
