// Whatever comes late here, and whatever a viewer was sent elsewhere: it is sent nothing older, and ends with the latest.
import { versionOf } from '@keycast/protocol'
import { randomNumbers } from '../../../../test/support/random.js'
import { createTestGateway } from '../../test-support.ts'

const KEY = 'tick:1'
const BODIES = ['0', '1', '2']

/** What is on its way from the node, in order. `isGot`: it answers the get. */
type State = { order: number; body: string; isGot: boolean } | 'failed'

test.each(Array.from({ length: 50 }, (_, seed) => seed))(
  'viewers that come from other gateways, seed %i',
  async seed => {
    const random = randomNumbers(seed)
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]
    const { backbone, connect, pass } = createTestGateway({
      namespaces: { tick: { refreshMs: pick([0, 1_000]), timeoutMs: 1_000 } },
      settings: { requestsPerSecondMax: 1e6, stallMsMax: 1e9 },
    })
    let latest = { order: 1, body: '0' }
    const link: State[] = []
    let heard = 0
    let isWatched = false
    /** Of the gateway's get: the node has it, or its answer is on the way. */
    let get: 'none' | 'asked' | 'answered' = 'none'

    function hear() {
      for (const call of backbone.calls.slice(heard)) {
        if (call === `get ${KEY}` && get === 'none') get = 'asked'
        if (call === `unwatch ${KEY}`) isWatched = false
        if (call !== `watch ${KEY}`) continue
        isWatched = true
        link.push({ ...latest, isGot: false })
      }
      heard = backbone.calls.length
    }
    function answer(failing: number) {
      hear()
      if (get !== 'asked') return
      get = 'answered'
      link.push(random() < failing ? 'failed' : { ...latest, isGot: true })
    }
    function deliver() {
      const state = link.shift()
      if (state === undefined) return
      if (state === 'failed' || state.isGot) get = 'none'
      if (state === 'failed') backbone.failed(KEY, 'backend_error')
      else if (isWatched || state.isGot) backbone.value(KEY, state.body, { order: state.order }, state.isGot)
      hear()
    }

    const viewers = await Promise.all(
      ['', '', 'keycast.v1.bytes', 'keycast.v1.bytes'].map(async subprotocol => {
        const client = await connect(subprotocol)
        return { ...client, held: { version: undefined as string | undefined, order: 0 }, isSubscribed: false }
      }),
    )
    type Viewer = (typeof viewers)[number]
    async function read(viewer: Viewer) {
      for (const { type, version, order } of await viewer.received()) {
        if (!['value', 'current', 'delta'].includes(type)) continue
        expect(order).toBeGreaterThanOrEqual(viewer.held.order)
        if (type === 'current') expect(version).toBe(viewer.held.version)
        viewer.held = { version, order }
      }
    }
    async function comeOrGo(viewer: Viewer) {
      viewer.connection.drain()
      await read(viewer)
      const isElsewhere = !viewer.isSubscribed && random() < 0.6
      if (isElsewhere) viewer.held = { version: versionOf(Buffer.from(latest.body)), order: latest.order }
      if (viewer.isSubscribed) viewer.send({ type: 'unsubscribe', keys: [KEY] })
      else viewer.send({ type: 'subscribe', keys: [{ key: KEY, ...viewer.held }] })
      viewer.isSubscribed = !viewer.isSubscribed
      hear()
    }

    const acts: (() => unknown)[] = [
      () => {
        latest = { order: latest.order + 1, body: pick(BODIES.filter(body => body !== latest.body)) }
        hear()
        if (isWatched) link.push({ ...latest, isGot: false })
      },
      () => answer(0.25),
      deliver,
      deliver,
      deliver,
      () => comeOrGo(pick(viewers)),
      () => read(pick(viewers)),
      () => {
        pick(viewers).connection.stuck = true
      },
      () => pick(viewers).connection.drain(),
      () => pass(random() * 2_000),
    ]
    for (let step = 0; step < 300; step++) await pick(acts)()

    for (const { connection } of viewers) connection.drain()
    for (let round = 0; round < 5; round++) {
      answer(0)
      link.push({ ...latest, isGot: false })
      while (link.length > 0) deliver()
      for (const viewer of viewers) await read(viewer)
    }
    const held = { version: versionOf(Buffer.from(latest.body)), order: latest.order }
    for (const viewer of viewers) if (viewer.isSubscribed) expect(viewer.held).toEqual(held)
  },
)
