// Rooms as real processes: a journal, gateways, and clients over WebSocket whose every sight goes to a checker.
import WebSocket from 'ws'
import { atEnd } from './cleanup.ts'
import { eventually, within } from './deadline.ts'
import { freePorts } from './free-ports.ts'
import { ask } from './http.ts'
import { startJournal } from './journal.ts'
import { startService } from './processes.ts'
import { writeConfig } from './system.ts'

export const API_TOKEN = 'a-token-for-tests'

/** @typedef {Awaited<ReturnType<typeof joinRooms>>} RoomClient */

/**
 * @param {object} [options]
 * @param {Record<string, object>} [options.namespaces] of rooms, as in keycast.yaml
 * @param {object} [options.access]
 * @param {number} [options.gateways]
 * @param {Record<string, string>} [options.env] of gateways
 * @param {Record<string, string>} [options.journalEnv]
 * @param {number} [options.journals] the number of journals, if they share the log
 */
export async function startRooms({
  namespaces = { room: {} },
  access = { anonymous: { read: ['*:**'], publish: ['*:**'] } },
  gateways: gatewayCount = 1,
  env = {},
  journalEnv = {},
  journals: journalCount = 1,
} = {}) {
  const entries = Object.entries(namespaces).map(([name, rest]) => [name, { source: 'journal', ...rest }])
  const config = writeConfig(Object.fromEntries(entries), access)
  const journals = await Promise.all(
    Array.from({ length: journalCount }, () => startJournal({ config, env: journalEnv })),
  )

  async function startGateway() {
    const process = await startService('gateway', {
      KEYCAST_CONFIG: config,
      API_TOKEN,
      JOURNAL_NODES: journals.map(({ node }) => node).join(),
      GATEWAY_PORT: String((await freePorts(1))[0]),
      GATEWAY_INTERNAL_PORT: '0',
      ...env,
    })
    const { port, internalPort } = process.listening
    const internal = `http://127.0.0.1:${internalPort}`
    const gateway = {
      process,
      url: `ws://127.0.0.1:${port}/ws`,
      http: `http://127.0.0.1:${port}`,
      internal,
      /** @param {string} name with labels, if any */
      async metric(name) {
        const text = (await ask(`${internal}/metrics`)).body.toString()
        const line = text.split('\n').find(each => each.startsWith(`keycast_gateway_${name} `))
        return Number(line?.slice(line.lastIndexOf(' ') + 1))
      },
      /** @param {string} path @param {object} [body] */
      call: (path, body) =>
        ask(internal + path, {
          method: body ? 'POST' : 'GET',
          headers: { authorization: `Bearer ${API_TOKEN}`, 'content-type': 'application/json' },
          body: body && JSON.stringify(body),
        }),
    }
    await eventually(
      async () => (await gateway.metric('journal_nodes_alive')) === journalCount,
      'the journals answering',
    )
    return gateway
  }

  const gateways = await Promise.all(Array.from({ length: gatewayCount }, startGateway))
  return { journal: journals[0], journals, startGateway, gateways }
}

/**
 * A client that notes what it is told of rooms.
 *
 * @param {string} url
 * @param {object} [options]
 * @param {string} [options.name] to the checker; one that resumes elsewhere keeps it
 * @param {ReturnType<typeof import('./checker.ts').createChecker>} [options.checker]
 * @param {Record<string, string>} [options.headers]
 * @param {(message: any) => void} [options.onMessage]
 */
export async function joinRooms(url, { name = '', checker, headers = {}, onMessage = () => {} } = {}) {
  const socket = new WebSocket(url, [], { perMessageDeflate: false, headers })
  atEnd(() => socket.terminate())
  /** @type {any[]} */
  const received = []
  /** The position of its stream in each room. @type {Map<string, { epoch: string, seq: number }>} */
  const positions = new Map()
  /** @type {Map<unknown, (message: any) => void>} */
  const requests = new Map()
  /** @type {Set<() => void>} */
  const waiters = new Set()
  let lastId = 0
  let isKept = true

  socket.on('message', bytes => {
    const message = JSON.parse(bytes.toString())
    if (isKept) received.push(message)
    note(message)
    onMessage(message)
    const answer = requests.get(message.id)
    requests.delete(message.id)
    answer?.(message)
    for (const wake of waiters) wake()
  })
  const ended = new Promise(resolve => socket.on('close', code => resolve(code)))
  socket.on('error', () => {})

  /** @param {any} message */
  function note({ type, key, keys, seq, epoch, messageId, data }) {
    if (type === 'subscribed') {
      for (const each of keys) {
        const after = each.seq - each.count
        const sight = each.recovered || !positions.has(each.key) ? 'head' : 'gap'
        positions.set(each.key, { epoch: each.epoch, seq: after })
        checker?.saw(name, each.key, { type: /** @type {any} */ (sight), epoch: each.epoch, seq: each.seq, after })
      }
    } else if (type === 'gap') {
      positions.set(key, { epoch, seq })
      checker?.saw(name, key, { type, epoch, seq })
    } else if (type === 'message') {
      const position = positions.get(key) ?? { epoch: '', seq: 0 }
      position.seq = seq
      checker?.saw(name, key, { type, epoch: position.epoch, seq, messageId, data: JSON.stringify(data) })
    }
  }

  const client = {
    socket,
    received,
    positions,
    ended,
    /** Counts on without what is received being kept. */
    keepNothing() {
      isKept = false
      received.length = 0
    },
    /** @param {object} message */
    send: message => socket.send(JSON.stringify(message)),
    /** @param {object} request @returns {Promise<any>} the first message with its id */
    request(request) {
      const id = ++lastId
      const answered = new Promise(resolve => requests.set(id, resolve))
      client.send({ ...request, id })
      return within(answered, () => `an answer to ${JSON.stringify(request).slice(0, 100)}`)
    },
    /** @param {(string | object)[]} keys */
    subscribe: (...keys) => client.request({ type: 'subscribe', keys }),
    /** @param {string} key @param {unknown} data @param {string} [messageId] */
    publish: (key, data, messageId) => client.request({ type: 'publish', key, messageId, data }),
    /** Takes a room up where another connection of the same client was. @param {Map<string, { epoch: string, seq: number }>} from */
    resume(from) {
      for (const [key, position] of from) positions.set(key, position)
      return client.subscribe(...[...from].map(([key, after]) => ({ key, after: { ...after } })))
    },
    /** Of one type, or of one room as well. @param {string} type @param {string} [key] @returns {any[]} */
    all: (type, key) => received.filter(each => each.type === type && (key === undefined || each.key === key)),
    /** @param {() => unknown} condition @param {string} what */
    async until(condition, what) {
      /** @type {() => void} */
      let wake = () => {}
      const met = new Promise(resolve => {
        wake = () => void (condition() && resolve(undefined))
        waiters.add(wake)
        wake()
      })
      try {
        await within(met, () => what)
      } finally {
        waiters.delete(wake)
      }
    },
  }
  const refused = ended.then(code => {
    throw new Error(`closed with ${code} before the welcome`)
  })
  await Promise.race([client.until(() => received.some(({ type }) => type === 'welcome'), 'the welcome'), refused])
  refused.catch(() => {}) // it ends some time
  return client
}

/**
 * A client, as the load and the reader of histories take it.
 *
 * @param {RoomClient} client
 * @returns {any}
 */
export const asBackbone = client => ({
  isAvailable: () => true,
  /** @param {{ room: string, messageId: string, data: Buffer }} publish */
  async publish({ room, messageId, data }) {
    const answer = await client.publish(room, JSON.parse(data.toString()), messageId)
    return answer.type === 'published' ? answer : { error: answer.code }
  },
  /** @param {string} key @param {{ after: number, limit: number }} range */
  async history(key, range) {
    const answer = await client.request({ type: 'history', key, ...range })
    if (answer.type !== 'history') return { error: answer.code }
    const messages = answer.messages.map((/** @type {any} */ { data, ...rest }) => ({
      ...rest,
      data: Buffer.from(JSON.stringify(data)),
    }))
    return { ...answer, messages }
  },
})
