// What a node and its hub ask of each other: the fetcher's primary and the journal are such nodes.
import type { Payer } from '@keycast/service'
import type { Service } from '../wire/codec.ts'
import type { Want } from '../wire/envelope.ts'

/** The functions that a node gives its hub. All are synchronous. */
export interface NodeEvents<S extends Service> {
  /**
   * Called also if the link watches already: its gateway repeats its position and payload, while earlier answers may
   * still be under way to it.
   */
  onWatch: (link: string, want: Want<S>) => void
  /** `hasLeft`: nobody at the gateway watches the key; without it another node may be asked for it from now on. */
  onUnwatch: (link: string, key: string, hasLeft: boolean) => void
  onGet: (link: string, want: Want<S>) => void
  onCancelGet: (link: string, key: string) => void
  /** May come twice. */
  onNotice?: (link: string, notice: S['Notice']) => void
  /**
   * May come twice, under the same id; must be answered with `tellResult`. `leftMs`: the gateway gives it up then.
   * Where it is not above 0, the gateway has, and a late result surprises who was told so. `payer`: who is charged for it.
   */
  onCommand?: (link: string, id: string, command: S['Command'], leftMs: number, payer?: Payer) => void
  /**
   * Everything that the link wanted is void. Forgetting 100,000 keys may take long: a returned iterator is run to its
   * end turn by turn.
   */
  onLinkLost: (link: string) => Iterator<unknown> | undefined
  /**
   * The link's due answers for the key: some `bytesLeft` of them, one at least. `more`: it is asked again for the rest,
   * after other keys and as credit allows.
   */
  answersFor: (link: string, key: string, bytesLeft: number) => { answers: S['Answer'][]; more: boolean }
  /** Of what the node answers from. A gateway uses the nodes of one log only. */
  logId?: () => string
  /** How far that log is: it never goes back, but where it was replaced by an older state of itself. */
  logAt?: () => number | undefined
  /** Whether it cannot reach that log: nodes that can have its keys meanwhile. */
  isCutOff?: () => boolean
  /**
   * A gateway was told of the log when it was further than it is now. It uses the node again once the log has another
   * id.
   */
  onLogAhead?: (link: string, logId: string, logAt: number) => void
  /** The node's progress, to go with a beat. */
  headsFor?: (link: string) => S['Heads'] | undefined
}

export interface Hub<S extends Service> {
  /** Binds, then calls the events; rejects if a port is taken. */
  start: (events: NodeEvents<S>) => Promise<void>
  stop: () => Promise<void>
  /**
   * The link is due something of the key. Costs one set entry: `answersFor` is asked for it when the link has credit,
   * so a slow gateway holds no queue of answers.
   */
  tell: (link: string, key: string) => void
  /** Of a command, after all answers told before. */
  tellResult: (link: string, id: string, result: S['Result']) => void
  stats: () => { links: number; dueKeys: number; bytesOut: number }
}
