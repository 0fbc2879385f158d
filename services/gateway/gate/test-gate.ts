// A gate whose namespaces have no backend that decides and no values of users' own, unless a test says so.
import { createGate } from './gate.ts'

type Deps = Parameters<typeof createGate>[0]

export const createTestGate = (
  given: Pick<Deps, 'namespaces'> & Partial<Omit<Deps, 'decisions'>> & { decisions?: Partial<Deps['decisions']> },
) =>
  createGate({
    quota: { take: () => undefined, giveBack() {} },
    counts: { accessRefused: { unauthenticated: 0, forbidden: 0 } },
    ...given,
    decisions: {
      ask: () => undefined,
      refusal: () => undefined,
      register: () => 'admitted',
      unregister() {},
      giveUp() {},
      ...given.decisions,
    },
  })
