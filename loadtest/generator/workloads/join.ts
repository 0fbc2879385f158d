// Members who join one room: each is told who is there, and counts the frames that takes.
import type { Client } from '../client.ts'
import { codeIn, numberAfter } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

const HEAD_BYTES = 256

export const counts = [
  'subscribed',
  'requested',
  'joined',
  'refusals',
  'lost',
  'lists',
  'differences',
  'complete',
  'bodyBytes',
  'unexpected',
] as const
/** `latency`: from being due to join until told; `frames`: of each member, of who is there. */
export const histograms = ['latency', 'frames'] as const

/** Members join evenly spread over `overMs`, once told to. */
interface JoinSettings {
  room: string
  members: number
  overMs: number
}

interface Member {
  client: Client
  number: number
  dueUs: number
  frames: number
  isComplete: boolean
}

export const createWorkload: CreateWorkload<JoinSettings, typeof counts, typeof histograms> = ({
  settings: { room, members: memberCount, overMs },
  tally,
  nowUs,
}) => {
  const tallied = tally.counts
  const members = new Set<Member>()
  let timer: NodeJS.Timeout | undefined

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const member: Member = { client, number, dueUs: 0, frames: 0, isComplete: false }
        members.add(member)
        return {
          onMessage: (head, bytes) => onMessage(member, head, bytes),
          onEnd() {
            members.delete(member)
            record(tally.histograms.frames, member.frames)
            if (member.dueUs > 0) tallied.lost += 1
          },
        }
      },
    },
    outstanding() {
      let sum = 0
      for (const { dueUs } of members) if (dueUs > 0) sum += 1
      return sum
    },
    tell() {
      const startUs = nowUs()
      const waiting = [...members].sort((a, b) => a.number - b.number)
      timer = setInterval(() => {
        for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
          const dueUs = startUs + (next.number / memberCount) * overMs * 1_000
          if (dueUs > nowUs()) return
          waiting.shift()
          next.dueUs = dueUs
          tallied.requested += 1
          const join = { type: 'join', id: 2, key: room, name: `member ${next.number}` }
          next.client.send(encodeFrame(JSON.stringify(join)))
        }
        clearInterval(timer)
      }, 1)
    },
    stop() {
      clearInterval(timer)
    },
  }

  function onMessage(member: Member, head: string, bytes: number) {
    if (head.startsWith('{"type":"members"') || head.startsWith('{"type":"presence"')) {
      if (head.startsWith('{"type":"members"')) tallied.lists += 1
      else tallied.differences += 1
      member.frames += 1
      tallied.bodyBytes += bytes
      const isComplete = numberAfter(head, '"count":') === memberCount
      if (isComplete && !member.isComplete) tallied.complete += 1
      member.isComplete ||= isComplete
    } else if (head.startsWith('{"type":"joined"')) {
      tallied.joined += 1
      record(tally.histograms.latency, nowUs() - member.dueUs)
      member.dueUs = 0
    } else if (head.startsWith('{"type":"error"')) {
      tallied.refusals += 1
      member.dueUs = 0
      tally.because(`error: ${codeIn(head)}`)
    } else if (head.startsWith('{"type":"welcome"')) {
      const keys = [{ key: room, presence: true }]
      member.client.send(encodeFrame(JSON.stringify({ type: 'subscribe', id: 1, keys })))
    } else if (head.startsWith('{"type":"subscribed"')) {
      if (head.includes('"epoch"')) tallied.subscribed += 1
    } else if (!head.startsWith('{"type":"closing"')) tallied.unexpected += 1
  }
}
