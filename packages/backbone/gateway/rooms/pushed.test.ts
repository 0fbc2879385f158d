import { pushedKey } from '../../wire/pushed-codec.ts'
import { createPushedBackbone, type PushedState } from './pushed.ts'

const key = pushedKey('price:1')
const contentOf = (text: string) => {
  return { version: `v-${text}`, contentType: 'application/json', format: 'json' as const, body: Buffer.from(text) }
}

/** `held`: the version that the gateway holds. */
function setup() {
  const told: (string | undefined)[] = []
  let held: string | undefined
  const backbone = createPushedBackbone({
    router: { watch() {} } as any,
    events: {
      heldVersion: () => held,
      onPushed(state: PushedState) {
        if (state.type === 'value') held = state.content.version
        if (state.type === 'failed') held = undefined
        told.push(state.type === 'failed' ? state.code : held)
      },
    },
  })
  backbone.values.watch('price:1')
  const answer = (seq: number, text?: string) => {
    const content = text === undefined ? undefined : contentOf(text)
    backbone.onAnswer({ type: 'pushed', key, epoch: 'e', seq, order: seq, rank: undefined, content }, false)
  }
  return { ...backbone, told, answer }
}

test('a journal that is behind another brings no older value back, nor one that was removed', () => {
  const { answer, told } = setup()
  answer(1, '1')
  answer(2, '2')
  answer(1, '1')
  answer(3)
  answer(2, '2')
  answer(4, '4')
  expect(told).toEqual(['v-1', 'v-2', 'v-2', 'not_found', 'not_found', 'v-4'])
})

test('a gateway that knows of a removal is told that nothing changed', () => {
  const { answer, told, positionOf, onAnswer } = setup()
  answer(0)
  expect(positionOf(key)).toBeUndefined()
  answer(1, '1')
  answer(2)
  expect(positionOf(key)).toEqual({ epoch: 'e', seq: 2 })
  onAnswer({ type: 'unchanged', key, epoch: 'e', seq: 2 }, false)
  expect(told).toEqual(['not_found', 'v-1', 'not_found', 'not_found'])
})
