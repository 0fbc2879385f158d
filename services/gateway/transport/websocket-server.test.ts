import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket } from 'ws'
import { createAccept } from './websocket-server.ts'

test('a message of the longest size may come in as many reads as short segments make of it', async () => {
  const messageBytesMax = 2 * 1024 ** 2
  const accept = createAccept({ messageBytesMax, compression: false, chooseSubprotocol: () => undefined })
  const http = createServer()
  await once(http.listen(0, '127.0.0.1'), 'listening')
  const { port } = http.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  try {
    const [request, socket, head] = await once(http, 'upgrade')
    const transport = await new Promise<any>(resolve => accept(request, socket, head, resolve))
    await once(client, 'open')
    const came = Promise.race([once(transport, 'message'), once(transport, 'close')])
    // As ws is given what comes in: a segment of 536 bytes at a time.
    const { _receiver: receiver } = transport
    const frame = Buffer.alloc(14 + messageBytesMax, 'a')
    frame.writeUInt16BE(0x81ff, 0)
    frame.writeBigUInt64BE(BigInt(messageBytesMax), 2)
    frame.fill(0, 10, 14)
    for (let offset = 0; offset < frame.length; offset += 536) receiver.write(frame.subarray(offset, offset + 536))
    const [data] = await came
    expect(data.length).toBe(messageBytesMax)
  } finally {
    client.terminate()
    http.closeAllConnections()
    http.close()
  }
})
