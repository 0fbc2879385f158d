// Loaded before a service: at each SIGUSR2 the process writes down the files in which functions ran since the one before,
// by V8's counts.
import { appendFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

process.on('SIGUSR2', async () => {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const entered = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
  appendFileSync(
    `${process.env.ENTERED_FILES_FOLDER}/${process.pid}`,
    `${JSON.stringify(entered.map(({ url }) => url))}\n`,
  )
})
