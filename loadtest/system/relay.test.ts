import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { startRelay } from './relay.ts'

test('what comes back is as late as told, and in order', async () => {
  const echo = createServer(socket => socket.pipe(socket))
  await once(echo.listen(0, '127.0.0.1'), 'listening')
  const { port, delay } = await startRelay((echo.address() as AddressInfo).port)
  await delay(200)

  const startMs = performance.now()
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1')
  let heard = ''
  socket.on('data', chunk => (heard += chunk))
  for (const part of ['a', 'b', 'c']) await new Promise(resolve => socket.write(part, resolve))
  while (heard.length < 3) await once(socket, 'data')
  expect(heard).toBe('abc')
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(199)

  socket.destroy()
  await once(echo.close(), 'close')
})
