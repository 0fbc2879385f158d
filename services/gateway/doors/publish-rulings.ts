// Messages about which the backend is asked before they are published (`publish: { ask }`).
import type { AskedMessage, Backbone } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import { ANSWER_GRACE_MS, type AskBefore, createPlaces, type Payer } from '@keycast/service'
import { type Counts, countOne } from '../counts.ts'
import { silentFetcher } from '../topics/values/failure.ts'

export type PublishRulings = ReturnType<typeof createPublishRulings>

/** What backends say of messages, and what becomes of one of which they say nothing of use. */
export const rulings = ['taken', 'changed', 'refused', 'unanswered_taken', 'unanswered_refused'] as const

/**
 * Of messages that are being asked about, with {@link MESSAGE_BYTES} for each: half of all publishes under way. The rest is
 * for rooms of which no backend is asked, or one that hangs.
 */
const BYTES_MAX = 12 * 2 ** 20

/** The cost of a message beside its data. */
const MESSAGE_BYTES = 512

/** When to publish again, where nothing says when. */
const RETRY_MS = 1_000

interface Deps {
  backbone: Pick<Backbone, 'askAbout' | 'nodesAlive'>
  counts: Pick<Counts, 'rulings'>
}

export function createPublishRulings({ backbone, counts }: Deps) {
  const places = createPlaces(BYTES_MAX)

  /**
   * @param settings of its room
   * @returns what to publish, or why not. Never rejects
   */
  async function ruleOn(
    settings: AskBefore,
    message: AskedMessage,
    payer: Payer | undefined,
  ): Promise<Buffer | Problem> {
    const giveBack = places.take(payer, message.data.length + MESSAGE_BYTES)
    if (!giveBack) return tooMany
    // As long as the node lets a question wait, and then the backend: what the node says of it is to be heard.
    const deadlineMs = 2 * (settings.timeoutMs + ANSWER_GRACE_MS)
    const said = await backbone.askAbout(message, { deadlineMs, payer })
    giveBack()
    switch (said?.ruling) {
      case 'take':
        return count(said.data ? 'changed' : 'taken', said.data ?? message.data)
      case 'refuse':
        return count('refused', { code: 'message_refused', reason: said.reason })
      // Whatever the namespace says: else a user who floods the backend gets messages past it.
      case 'crowded':
        return count('unanswered_refused', { ...tooMany, message: said.message, retryAfterMs: retryOf(said) })
    }
    if (settings.otherwise === 'take') return count('unanswered_taken', message.data)
    if (!said) return count('unanswered_refused', silentFetcher(backbone.nodesAlive()))
    return count('unanswered_refused', { code: 'backend_error', message: said.message, retryAfterMs: retryOf(said) })
  }

  function count<T>(ruling: (typeof rulings)[number], outcome: T): T {
    countOne(counts.rulings, ruling)
    return outcome
  }

  return ruleOn
}

const retryOf = ({ retryAfterMs = RETRY_MS }: { retryAfterMs?: number }) => Math.ceil(retryAfterMs)

const tooMany: Problem = {
  code: 'too_many_waiting',
  message: 'too many messages wait for the backend to be asked about them',
  retryAfterMs: RETRY_MS,
}
