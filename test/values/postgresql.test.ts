// Rows of PostgreSQL, served by PostgREST and told by pg-sse as docs/deploy/postgresql.md has it, in a browser.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { launchChromium } from '../support/chromium.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { startEdge } from '../support/edge.ts'
import { show } from '../support/figures.ts'
import { freePorts } from '../support/free-ports.ts'
import { ask } from '../support/http.ts'
import { startPostgres } from '../support/postgres.ts'
import { startSystem } from '../support/system.ts'
import { answersAt, startTool } from '../support/tool.ts'

/** Behind the cache: one's request reaches a gateway, the others wait for nginx to look at its lock. */
const VIEWERS = 5

/** More of them give better figures: CHANGES=100. */
const CHANGES = Number(process.env.CHANGES ?? 5)

const page = readFileSync(new URL('../../docs/deploy/postgresql.md', import.meta.url), 'utf8')
const blockOf = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? ''
const python = fileURLToPath(new URL('../../clients/python/.venv/bin/python', import.meta.url))

/** The page's programs listen on ports of their own. */
const onFreePorts = (text: string) =>
  text.replace(/\b300[01]\b/g, port => String(port === '3000' ? rowsPort : changesPort))

const folder = newFolder()
const postgres = await startPostgres()
const [rowsPort, changesPort] = await freePorts(2)
await postgres.run(blockOf('sql'))
const [, trigger] = /python3 -c "(.*)"/.exec(blockOf('sh')) ?? []
await postgres.run(execFileSync(python, ['-c', trigger], { encoding: 'utf8' }))
await postgres.run("insert into articles values (1, 'One', 0)")
await Promise.all([startPostgrest(), startPgSse()])

const { article } = parse(onFreePorts(blockOf('yaml'))).namespaces
const { gateways, fetchers } = await startSystem({
  // A poll within the time of a test would hide what the stream does.
  namespaces: { article: { ...article, refresh: '1h' } },
})
const [gateway] = gateways
const isUp = async () => (await fetchers[0].series('keycast_fetcher_changes_down_seconds'))[0]?.endsWith(' 0')
await eventually(isUp, 'the stream of changes')

function startPostgrest() {
  const file = join(folder, 'postgrest.conf')
  writeFileSync(file, onFreePorts(blockOf('ini')))
  const isReady = () => answersAt(`http://127.0.0.1:${rowsPort}/articles`)
  return startTool('postgrest', [file], isReady, { env: { PATH: process.env.PATH, ...postgres.env } })
}

function startPgSse() {
  writeFileSync(join(folder, 'changes.py'), blockOf('python'))
  const args = ['-m', 'uvicorn', 'changes:app', '--host', '127.0.0.1', '--port', String(changesPort)]
  const isReady = (said: string) => said.includes('Uvicorn running')
  return startTool(python, args, isReady, { cwd: folder, env: postgres.env })
}

const revise = (id: number, revision: number) =>
  postgres.run(`update articles set revision = ${revision} where id = ${id}`)

test(`a row that changes reaches a browser over WebSocket, EventSource and a cache, ${CHANGES} times`, async () => {
  const edge = await startEdge(gateways)
  const { headers } = await ask(`${gateway.http}/v1/values/article:1`)
  const version = String(headers.etag).slice(1, -1)
  const cursor = String(headers['keycast-cursor'])

  /** When each way was shown which revision, the cache's last viewer, by the one clock of the host. */
  const seen: Record<string, Map<number, number>> = {}
  const browser = await launchChromium()
  const open = async (url: string) => {
    const tab = await browser.newPage()
    await tab.exposeFunction('seen', (way: string, revision: number, at: number) => {
      seen[way] ??= new Map()
      if (!seen[way].has(revision)) seen[way].set(revision, at)
    })
    await tab.goto(url)
    return tab
  }
  const live = await open(`${gateway.http}/keycast.js`)
  await live.evaluate(`(async () => {
    const { connect } = await import('/keycast.js')
    const see = (way, { revision }) => seen(way, revision, Date.now())
    connect('${gateway.url}').value('article:1').on('change', ({ value }) => value && see('WebSocket', value))
    new EventSource('/v1/stream?keys=article:1').onmessage = ({ data }) => {
      const { type, data: value } = JSON.parse(data)
      if (type === 'value') see('EventSource', value)
    }
  })()`)
  const waiting = await open(edge)
  await waiting.evaluate(`(() => {
    const counts = {}
    // Not from the browser's own cache, in which the others would wait for the first.
    const view = async (version, cursor) => {
      const options = { cache: 'no-store' }
      const answer = await fetch('/v1/wait/article:1?after=' + version + '&cursor=' + cursor, options)
      if (answer.status === 200) {
        const { revision } = await answer.json()
        counts[revision] = (counts[revision] ?? 0) + 1
        if (counts[revision] === ${VIEWERS}) seen('cache', revision, Date.now())
        version = answer.headers.get('etag').replace(/^W\\/|"/g, '')
      }
      if (answer.ok) view(version, answer.headers.get('keycast-cursor'))
    }
    for (let each = 0; each < ${VIEWERS}; each++) view('${version}', '${cursor}')
  })()`)
  const hasSeen = (revision: number, ways: string[]) => ways.every(way => seen[way]?.has(revision))
  await eventually(() => hasSeen(0, ['WebSocket', 'EventSource']), 'the row as it was')
  await eventually(async () => (await gateway.metric('keycast_gateway_waits')) === 1, 'the request waiting')

  const changedAt: number[] = []
  const committed = new Map<number, number>()
  const ways = ['WebSocket', 'EventSource', 'cache']
  for (let revision = 1; revision <= CHANGES; revision++) {
    changedAt[revision] = Date.now()
    await revise(1, revision)
    committed.set(revision, Date.now())
    await eventually(() => hasSeen(revision, ways), `revision ${revision} on all three ways`, { everyMs: 5 })
  }
  for (const [way, at] of Object.entries({ 'psql, committed': committed, ...seen })) {
    const took = changedAt.map((from, revision) => (at.get(revision) as number) - from).slice(1)
    took.sort((a, b) => a - b)
    const [p50, p99] = [0.5, 0.99].map(share => took[Math.ceil(share * CHANGES) - 1])
    show(`${CHANGES} changed rows → ${way}: p50 ${p50} ms, p99 ${p99} ms, at most ${took.at(-1)} ms`)
  }
})

test('a row that is inserted appears, one that is deleted is gone, and an id that is none harms no other', async () => {
  const client = await connect(gateway.url)
  await client.subscribe(['article:2', 'article:two'])
  const isGone = () => client.of('article:2').error?.code === 'not_found'
  await client.until(isGone, 'that there is none yet')
  await postgres.run("insert into articles values (2, 'Two', 1)")
  await client.reaches('article:2', 1)
  expect(client.of('article:2').data).toEqual({ id: 2, title: 'Two', revision: 1 })
  await client.until(() => client.of('article:two').error?.code === 'backend_refused', 'the refusal of what is no id')
  await postgres.run('begin; update articles set revision = 9 where id = 2; rollback')
  await revise(2, 2)
  await client.reaches('article:2', 2)
  expect(client.of('article:2').revisions).toEqual([1, 2])
  await postgres.run('delete from articles where id = 2')
  await client.until(isGone, 'that it is gone')
  client.close()
})

test('a row that changes while nobody listens to PostgreSQL is not missed', async () => {
  await postgres.run("insert into articles values (3, 'Three', 1)")
  const client = await connect(gateway.url)
  await client.subscribe(['article:3'])
  await client.reaches('article:3', 1)
  const listener = "application_name = 'pg-sse-listener'"
  await postgres.run(
    `begin; select pg_terminate_backend(pid) from pg_stat_activity where ${listener} \\g /dev/null
    update articles set revision = 2 where id = 3; commit`,
  )
  await client.reaches('article:3', 2)
  client.close()
})
