// The job of docs/client-recipes.md that must see every message, as it stands there: killed, and away for longer than the room
// remembers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect } from '@keycast/client'
import WebSocket from 'ws'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startRooms } from '../support/system.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/client-recipes.md'), 'utf8')
const recipes = [...page.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code)

test('a job that must see every message goes on where it was killed, and reads what a gap leaves', async () => {
  const { gateways } = await startRooms({ namespaces: { room: { history: { messages: 10 } } } })
  const [{ url }] = gateways
  const folder = newFolder()
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const recipe = String(recipes.find(code => code.includes('position.json')))
  writeFileSync(join(folder, 'job.mjs'), recipe.replace('ws://127.0.0.1:8080/ws', url))
  const saved = join(folder, 'position.json')

  function start() {
    const child = spawn(process.execPath, ['job.mjs'], { cwd: folder })
    atEnd(() => child.kill('SIGKILL'))
    const said = { out: '', error: '' }
    child.stdout.on('data', chunk => {
      said.out += chunk
    })
    child.stderr.on('data', chunk => {
      said.error += chunk
    })
    const reaches = (seq: number) =>
      eventually(
        () => existsSync(saved) && JSON.parse(readFileSync(saved, 'utf8')).seq === seq,
        `a job that has saved ${seq}`,
      )
    async function end(signal: NodeJS.Signals) {
      child.kill(signal)
      const [code] = await once(child, 'close')
      return { ...said, code }
    }
    return { reaches, end }
  }

  const keycast = connect(url, { WebSocket: WebSocket as any })
  atEnd(() => keycast.close())
  const room = keycast.room('room:42', { follow: false })
  async function publish(from: number, to: number) {
    for (let n = from; n <= to; n++) await room.publish(n)
  }

  const first = start()
  await first.reaches(0)
  await publish(1, 3)
  await first.reaches(3)
  expect(await first.end('SIGKILL')).toMatchObject({ out: '1\n2\n3\n', error: '' })

  await publish(4, 8)
  const second = start()
  await second.reaches(8)
  expect(await second.end('SIGKILL')).toMatchObject({ out: '4\n5\n6\n7\n8\n', error: '' })

  await publish(9, 30)
  const third = start()
  await third.reaches(30)
  await publish(31, 31)
  await third.reaches(31)
  const { out, error, code } = await third.end('SIGTERM')
  expect(error).toBe('messages 9 to 20 are gone\n')
  expect(out.trim().split('\n').map(Number)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31])
  expect(code).toBe(0)
})
