import { secondOf } from '../test-support.ts'
import { cpuFigures, cpuPerDelivery, megabytesOf, perSecondOf, usageFigures } from './figures.ts'

const services = [
  { name: 'gateway 1', role: 'gateway', cpuMs: 30 },
  { name: 'gateway 2', role: 'gateway', cpuMs: 20 },
  { name: 'fetcher', role: 'fetcher', cpuMs: 10 },
]

test('CPU per delivery is that of all processes of a role, over all seconds', () => {
  const seconds = [
    secondOf({ counts: { answered: 1_500 }, services }),
    secondOf({ counts: { answered: 500 }, services }),
  ]

  expect(cpuPerDelivery(seconds, 'answered')).toEqual({ gateway: 50, fetcher: 10 })
})

test("the gateway's own is told from the whole system's", () => {
  const figures = cpuFigures([secondOf({ counts: { answered: 1_000 }, services })], 'answered')

  expect(figures.gatewayCpuPerDelivery.value).toBe(50)
  expect(figures.systemCpuPerDelivery.value).toBe(60)
})

test('where nothing was delivered or nobody was watched there is no figure', () => {
  expect(cpuFigures([secondOf({ counts: {}, services })], 'answered')).toEqual({})
  expect(cpuFigures([secondOf({ services: [] })], 'answered')).toEqual({})
})

test('memory is the most that all processes of a role took together, and no figure where none was looked at', () => {
  const at = (residentBytes: number) => secondOf({ services: services.map(service => ({ ...service, residentBytes })) })

  expect(megabytesOf([at(10e6), at(30e6), at(20e6)], 'gateway')).toBe(60)
  expect(megabytesOf([secondOf({ services })], 'gateway')).toBeUndefined()
})

test('a count a second is of the time that passed, not of the reports that came', () => {
  const late = secondOf({ counts: { answered: 3_000 }, seconds: 1.5 })

  expect(perSecondOf([late, late], 'answered')).toBe(2_000)
  expect(perSecondOf([], 'answered')).toBe(0)
})

test('what the whole system takes is the sum over its processes: CPU of the time, memory on average', () => {
  const at = (residentBytes: number) =>
    secondOf({ seconds: 2, services: services.map(service => ({ ...service, residentBytes })) })
  const { systemCpu, systemMegabytes } = usageFigures([at(10e6), at(30e6)])

  expect(systemCpu.value).toBe(3)
  expect(systemMegabytes.value).toBe(60)
  expect(usageFigures([secondOf({ services: [] })])).toEqual({})
})
