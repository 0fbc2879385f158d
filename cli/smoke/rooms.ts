// The promise that clients of rooms rely on: an acknowledged message reaches every reader, also one that was away.
import { randomBytes } from 'node:crypto'
import type { Target } from '../support/client.ts'
import { openRoomClient, type Position } from '../support/room-client.ts'

const newId = () => randomBytes(16).toString('base64url')

export async function checkRooms(
  target: Target,
  room: string,
  check: ReturnType<typeof import('../support/client.ts').createChecks>['check'],
) {
  let left: Position | undefined
  const first = newId()
  const reachesReaders = await check(
    `a message published into ${room} is kept, and comes to a reader`,
    async signal => {
      const reader = await openRoomClient(target, signal)
      const writer = await openRoomClient(target, signal)
      await reader.subscribe(room)
      const answer = await writer.publish(room, first, 'the first')
      if (answer.type !== 'published') throw new Error(`${answer.code}: ${answer.message}`)
      const { seq, data } = await reader.message(first, signal)
      if (seq !== answer.seq || data !== 'the first') throw new Error(`another message came: ${seq} ${data}`)
      left = { epoch: answer.epoch, seq }
      for (const client of [reader, writer]) client.close()
      return `message ${seq}`
    },
  )
  if (!reachesReaders || !left) return
  const position = left

  await check('sent again with its messageId it is the same message', async signal => {
    const writer = await openRoomClient(target, signal)
    const answer = await writer.publish(room, first, 'the first')
    writer.close()
    if (!answer.duplicate || answer.seq !== position.seq) throw new Error(`got ${JSON.stringify(answer)}`)
    return undefined
  })
  await check('a reader that was away resumes with what it missed', async signal => {
    const writer = await openRoomClient(target, signal)
    const missed = [newId(), newId()]
    for (const messageId of missed) await writer.publish(room, messageId, 'missed')
    writer.close()
    const reader = await openRoomClient(target, signal)
    const { recovered, count } = await reader.subscribe(room, { after: position })
    if (!recovered || count < missed.length) throw new Error(`recovered: ${recovered}, count: ${count}`)
    for (const messageId of missed) await reader.message(messageId, signal)
    const seqs = reader.messages.map(({ seq }) => seq)
    reader.close()
    if (seqs.some((seq, index) => seq !== position.seq + 1 + index)) throw new Error(`got messages ${seqs.join()}`)
    return `${count} messages`
  })
}
