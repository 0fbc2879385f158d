import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { atEnd } from './cleanup.ts'
import { connectViewer } from './client.ts'

test('a viewer whose connection ends before it is subscribed takes the next one', async () => {
  const gateway = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  atEnd(() => {
    for (const socket of gateway.clients) socket.terminate()
    gateway.close()
  })
  await once(gateway, 'listening')
  let connections = 0
  gateway.on('connection', socket => {
    connections += 1
    const isKilled = connections === 1
    socket.send('{"type":"welcome"}')
    socket.on('message', data => {
      if (isKilled) return socket.terminate()
      const { id } = JSON.parse(data.toString())
      socket.send(JSON.stringify({ type: 'subscribed', id, keys: [{ key: 'doc:1' }] }))
      socket.send('{"type":"value","key":"doc:1","version":"v","order":1,"data":{"revision":7}}')
    })
  })
  const { port } = gateway.address() as AddressInfo
  const viewer = await connectViewer([`ws://127.0.0.1:${port}/ws`], ['doc:1'])
  await viewer.until(() => viewer.sights.of('doc:1').revision === 7, 'a value over the next connection')
  viewer.stop()
})
