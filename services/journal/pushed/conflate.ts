// Of the values that one batch brings for a key only the last is written: the others were the key's value for no moment that
// anybody could see.
import type { Kept, Outcome, Publish } from '../log/log.ts'

/** `among`: places in the batch, in order. `last`: the place of the one that is written. */
interface Together {
  among: number[]
  last: number
}

/**
 * @param publishes of one batch, in order
 * @returns those for the log; and `spread`, which makes the outcomes of all of those of these
 */
export function conflate(publishes: Publish[]): { written: Publish[]; spread: (outcomes: Outcome[]) => Outcome[] } {
  const asTheyAre = { written: publishes, spread: (outcomes: Outcome[]) => outcomes }
  if (!publishes.some(({ value }) => value)) return asTheyAre
  const all = togetherOf(publishes)
  if (all.length === publishes.length) return asTheyAre
  const written = all.map(({ last }) => publishes[last])
  return {
    written,
    spread(outcomes) {
      const spread: Outcome[] = []
      let index = 0
      for (const { among } of all) give(among, outcomes[index++], publishes, spread)
      return spread
    },
  }
}

/** @returns in the order in which they are written */
function togetherOf(publishes: Publish[]) {
  const all = new Map<string | number, Together>()
  for (const [index, { room, value }] of publishes.entries()) {
    // With and without a rank they are not in one order: which is the last, the log alone can say.
    const name = value ? `${room}\n${value.rank === undefined}` : index
    const together = all.get(name)
    if (!together) all.set(name, { among: [index], last: index })
    else {
      together.among.push(index)
      if (isNoOlder(publishes[index], publishes[together.last])) together.last = index
    }
  }
  return [...all.values()].sort((one, other) => one.last - other.last)
}

const isNoOlder = ({ value }: Publish, { value: before }: Publish) => (value?.rank ?? 0) >= (before?.rank ?? 0)

function give(among: number[], outcome: Outcome, publishes: Publish[], spread: Outcome[]) {
  let rank = outcome.error === undefined ? (outcome as Kept).value?.rankBefore : undefined
  for (const index of among) {
    const own = publishes[index].value?.rank
    if (outcome.error !== undefined || own === undefined) spread[index] = outcome
    else if (rank !== undefined && own < rank) spread[index] = { error: 'older', rank }
    else {
      rank = own
      spread[index] = outcome
    }
  }
}
