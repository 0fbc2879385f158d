// Values handed over: writers, each on a connection of its own, call POST /v1/values with batches of lines as soon as the one
// before is answered. Viewers note the number in each value that they are sent.
import { Agent, request } from 'node:http'
import { encodeFrame } from '../frames.ts'
import type { CreateWorkload } from '../workload.ts'

/** Type, key, version and the number. */
const HEAD_BYTES = 256

/** Keys in one subscribe. */
const SUBSCRIBE_MAX = 100

export const counts = ['calls', 'taken', 'failed', 'values', 'back', 'refusals', 'ready', 'unexpected'] as const
export const histograms = ['latency'] as const

interface HandoverSettings {
  /** Of gateways' internal listeners. */
  origins: string[]
  apiToken: string
  keys: string[]
  writers: number
  /** Of a call. */
  lines: number
  /** Of a value. */
  bytes: number
  /** Keys that a viewer watches. */
  perSession: number
}

/** By key: the last number that was taken, and the last that each viewer was sent. */
export interface HandoverOutcome {
  taken: [key: number, number: number][]
  seen: [key: number, number: number][]
}

export const createWorkload: CreateWorkload<HandoverSettings, typeof counts, typeof histograms> = ({
  settings: { origins, apiToken, keys, writers, lines, bytes, perSession },
  tally,
  nowUs,
  index,
  processes,
}) => {
  const tallied = tally.counts
  const padding = 'x'.repeat(Math.max(0, bytes - '{"n":1000000,"pad":""}'.length))
  const taken = new Map<number, number>()
  const viewers: Map<number, number>[] = []
  let isStopped = false
  let underWay = 0

  /** @param writer has the keys of its own, so that it knows their last numbers */
  function write(writer: number) {
    const own = keys.map((_, key) => key).filter(key => key % writers === writer)
    const { hostname, port } = new URL(origins[writer % origins.length])
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    let sent = 0
    const head = {
      host: hostname,
      port,
      agent,
      method: 'POST',
      path: '/v1/values',
      headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/jsonl' },
    }

    function call() {
      if (isStopped) return agent.destroy()
      const body: string[] = []
      const given: [number, number][] = []
      for (let line = 0; line < lines; line++, sent++) {
        const key = own[sent % own.length]
        const number = Math.floor(sent / own.length) + 1
        given.push([key, number])
        body.push(`{"key":"${keys[key]}","value":{"n":${number},"pad":"${padding}"},"order":${number}}`)
      }
      const startUs = nowUs()
      underWay++
      tallied.calls++
      const end = (why?: string) => {
        underWay--
        if (why === undefined) {
          tallied.taken += lines
          tally.recorders.latency(nowUs() - startUs)
          for (const [key, number] of given) taken.set(key, number)
        } else {
          tallied.failed += lines
          tally.because(`call: ${why}`)
        }
        call()
      }
      const asked = request(head, response => {
        let said = ''
        response.setEncoding('latin1').on('data', part => {
          said += part
        })
        response.on('end', () =>
          end(said.startsWith(`{"taken":${lines},`) ? undefined : `${response.statusCode} ${said.slice(0, 60)}`),
        )
      })
      asked.on('error', error => end(error.message))
      asked.end(body.join('\n'))
    }
    call()
  }

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const seen = new Map<number, number>()
        viewers.push(seen)
        const first = number * perSession
        const own = Array.from({ length: perSession }, (_, key) => keys[(first + key) % keys.length])
        let pending = 0
        return {
          onMessage(head) {
            if (head.startsWith('{"type":"value"')) note(seen, head)
            else if (head.startsWith('{"type":"welcome"')) {
              for (let start = 0; start < own.length; start += SUBSCRIBE_MAX) {
                pending++
                const part = own.slice(start, start + SUBSCRIBE_MAX)
                client.send(encodeFrame(JSON.stringify({ type: 'subscribe', id: start, keys: part })))
              }
            } else if (head.startsWith('{"type":"subscribed"')) {
              if (--pending === 0) tallied.ready++
            } else if (head.startsWith('{"type":"error"')) {
              // Until the first value there is none.
              if (!head.includes('"not_found"')) tallied.refusals++
            } else if (!/^\{"type":"(?:current|stale|closing)"/.test(head)) tallied.unexpected++
          },
          onEnd() {},
        }
      },
    },
    outstanding: () => underWay,
    /** Everybody watches; or enough was written, and viewers have some time to be sent it. */
    tell(message) {
      if ((message as { stop?: true }).stop) {
        isStopped = true
        return
      }
      for (let writer = index; writer < writers; writer += processes) write(writer)
    },
    stop() {
      isStopped = true
    },
    outcome: (): HandoverOutcome => ({ taken: [...taken], seen: viewers.flatMap(seen => [...seen]) }),
  }

  function note(seen: Map<number, number>, head: string) {
    const [, id, number] = /"key":"\w+:(\d+)"[\s\S]*\{"n":(\d+)/.exec(head) ?? []
    if (number === undefined) return // the backend's own value, before the first one
    tallied.values++
    const key = Number(id)
    if (Number(number) < (seen.get(key) ?? 0)) tallied.back++
    seen.set(key, Number(number))
  }
}
