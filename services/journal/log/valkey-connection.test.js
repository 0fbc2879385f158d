import { SILENT_MS } from '@keycast/service'
import { createSilenceWatch } from './valkey-connection.js'

function setup() {
  let at = 1_000
  const watch = createSilenceWatch(() => at)
  return {
    watch,
    /** @param {number} ms */
    pass(ms) {
      at += ms
    },
  }
}

const never = new Promise(() => {})

test('a command that nobody answers is noticed, though this process stalls again and again', () => {
  const { watch, pass } = setup()
  watch.over(never)
  let awakeMs = 0
  for (; awakeMs < SILENT_MS; awakeMs += 1_000) {
    pass(1_000 + 3_500)
    expect(watch.isSilent(3_500)).toBe(false)
  }
  pass(1_000 + 3_500)
  expect(watch.isSilent(3_500)).toBe(true)
})

test('a standstill counts for nothing, and one that was heard in between for less', async () => {
  const { watch, pass } = setup()
  watch.over(never)
  pass(60_000)
  expect(watch.isSilent(60_000)).toBe(false)
  await watch.over(Promise.resolve())
  expect(watch.isSilent(60_000)).toBe(false)
  pass(SILENT_MS + 1)
  expect(watch.isSilent(0)).toBe(true)
})
