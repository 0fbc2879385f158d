import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { atEnd } from './cleanup.ts'
import { startSwitch } from './tcp-switch.ts'

test('of a silenced connection that one end closes or resets, the other end hears nothing', async () => {
  const heard: string[] = []
  const server = createServer(socket => {
    socket.on('error', ({ message }) => heard.push(message)).on('close', () => heard.push('closed'))
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  atEnd(() => server.close())
  await once(server, 'listening')
  const network = await startSwitch((server.address() as AddressInfo).port)
  const connectAndHear = async () => {
    const socket = connect(network.port, '127.0.0.1')
    socket.write('heard?')
    await once(socket, 'data')
    return socket
  }

  const closed = await connectAndHear()
  const reset = await connectAndHear()
  network.silence()
  reset.resetAndDestroy()
  closed.end()
  await once(closed, 'close')
  network.mend()
  const next = await connectAndHear()
  expect(heard).toEqual([])
  next.destroy()
})
