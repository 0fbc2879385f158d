import { createRefusals } from './refusals.ts'

test('of many refusals one line a minute says how many those were', () => {
  const clock = { at: 0 }
  const lines: unknown[] = []
  const warn = (fields: object, text: string) => lines.push({ ...fields, text })
  const refuse = createRefusals({ log: { warn } as any, now: () => clock.at })
  for (let n = 0; n < 1_000; n++) refuse({ address: `10.0.0.${n}` }, 'no key')
  refuse({ address: '10.0.0.1' }, 'no curve')
  expect(lines).toEqual([
    { address: '10.0.0.0', refused: 1, text: 'no key' },
    { address: '10.0.0.1', refused: 1, text: 'no curve' },
  ])
  clock.at += 60_000
  refuse({ address: '10.0.0.7' }, 'no key')
  refuse({ address: '10.0.0.8' }, 'no key')
  expect(lines.slice(2)).toEqual([{ address: '10.0.0.7', refused: 1_000, text: 'no key' }])
})
