import cluster from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { WORK_CREDIT_VARIABLE, WORK_ENDPOINT_VARIABLE } from '../../worker-messages.ts'
import { createForks } from './processes.ts'

test('a worker knows its endpoint and its credit, and has threads for many backends whose names are not found', async () => {
  cluster.setupPrimary({ exec: fileURLToPath(new URL('./processes.fixture.ts', import.meta.url)) })
  const fork = createForks({ endpoint: 'ipc:///work', credit: 7 })
  let exited = () => {}
  const exit = new Promise(resolve => (exited = () => resolve(undefined)))

  const worker = fork(exited)
  const [, environment] = await once(cluster, 'message')
  worker.kill()
  await exit

  expect(environment).toMatchObject({
    [WORK_ENDPOINT_VARIABLE]: 'ipc:///work',
    [WORK_CREDIT_VARIABLE]: '7',
    UV_THREADPOOL_SIZE: '32',
  })
})
