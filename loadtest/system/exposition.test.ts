import { readExposition } from './exposition.ts'

const exposition = `# HELP keycast_gateway_process_cpu_seconds_total CPU time of the process.
# TYPE keycast_gateway_process_cpu_seconds_total counter
keycast_gateway_process_cpu_seconds_total{mode="user"} 1.5
keycast_gateway_process_cpu_seconds_total{mode="system"} 0.25
keycast_gateway_process_resident_memory_bytes 81000000
keycast_gateway_v8_heap_used_bytes 2.1e7
keycast_gateway_gc_runs_total{kind="minor"} 40
keycast_gateway_gc_runs_total{kind="major"} 3
`

test("a service's figures are read from its metrics, CPU of both modes together", () => {
  expect(readExposition(exposition)).toEqual({ cpuMs: 1_750, residentBytes: 81e6, heapBytes: 21e6, majorGcs: 3 })
})

test('what a service does not export is not known, rather than 0', () => {
  expect(readExposition('keycast_other_thing 1\n')).toEqual({
    cpuMs: undefined,
    residentBytes: undefined,
    heapBytes: undefined,
    majorGcs: undefined,
  })
})
