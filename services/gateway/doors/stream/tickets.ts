// Tickets: what a browser's EventSource shows in place of a token, for it sends no header and no token belongs into a
// URL. A ticket opens one stream, within seconds, at the gateway that gave it.
import type { World } from '@keycast/service'
import type { Verified } from '../../access/tokens/tokens.ts'

export type Tickets = ReturnType<typeof createTickets>

/** A page that has got its ticket connects at once. */
export const TICKET_MS = 30_000

/** Unused ones, at some 300 bytes each. Beyond, the oldest are no longer good. */
const TICKETS_MAX = 10_000

/** And of one user, who else would have all others' dropped: more tabs than a user opens at once. */
const TICKETS_OF_USER_MAX = 100

/** 128 bits: nobody guesses one. */
const TICKET_BYTES = 16

export function createTickets({ now, wallNow, randomBytes }: Pick<World, 'now' | 'wallNow' | 'randomBytes'>) {
  /** In the order they were given, as those of each user. */
  const tickets = new Map<string, { verified: Verified; untilMs: number }>()
  const byUser = new Map<string, Set<string>>()

  function drop(ticket: string, user: string) {
    tickets.delete(ticket)
    const own = byUser.get(user)
    own?.delete(ticket)
    if (own?.size === 0) byUser.delete(user)
  }

  return {
    give(verified: Verified): string {
      for (const [ticket, given] of tickets) {
        if (given.untilMs > now() && tickets.size < TICKETS_MAX) break
        drop(ticket, given.verified.user)
      }
      const own = byUser.get(verified.user) ?? new Set()
      for (const oldest of own) if (own.size >= TICKETS_OF_USER_MAX) drop(oldest, verified.user)
      const ticket = randomBytes(TICKET_BYTES).toString('base64url')
      tickets.set(ticket, { verified, untilMs: now() + TICKET_MS })
      byUser.set(verified.user, own.add(ticket))
      return ticket
    },

    /** @returns the token that the ticket stood for; it stands for nothing from now on */
    take(ticket: string): Verified | undefined {
      const given = tickets.get(ticket)
      if (!given) return undefined
      drop(ticket, given.verified.user)
      return given.untilMs > now() && given.verified.expiresAtMs > wallNow() ? given.verified : undefined
    },
  }
}
