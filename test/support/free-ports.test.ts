// Test files of two runs at one time, on one machine, are given ports of ranges of their own.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { atEnd } from './cleanup.ts'
import { within } from './deadline.ts'
import { PORTS_EACH } from './free-ports.ts'

/** Of another process, which goes on. */
async function portsOfAnother(count: number): Promise<number[]> {
  const path = new URL('free-ports.ts', import.meta.url).href
  const program = `
import { freePorts } from ${JSON.stringify(path)}
setInterval(() => {}, 1_000)
const asked = await Promise.all(Array.from({ length: ${count} / 2 }, () => freePorts(2)))
console.log(JSON.stringify(asked.flat()))`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(() => child.kill('SIGKILL'))
  const said = new Promise<string>(resolve => createInterface(child.stdout).once('line', resolve))
  return JSON.parse(await within(said, 'the ports of another process'))
}

test('two runs at one time have no port in common, and each has as many as it asks for', async () => {
  const ranges: number[] = []
  for (let run = 0; run < 2; run++) {
    const ports = await portsOfAnother(50)
    expect(new Set(ports).size).toBe(50)
    const ofRun = new Set(ports.map(port => Math.floor(port / PORTS_EACH)))
    expect(ofRun.size).toBe(1)
    ranges.push(...ofRun)
  }
  expect(ranges[0]).not.toBe(ranges[1])
})
