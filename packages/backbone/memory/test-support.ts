// Nodes and gateways on the in-process network, for the tests of both ends together.

import { ownersAmong } from '../gateway/rendezvous.ts'
import { createMemoryBackbone } from './backbone-memory.ts'

/**
 * A node that remembers its events and answers each want with the latest value put into it.
 *
 * @param {ReturnType<typeof createMemoryBackbone>} network @param {string} name
 */
export async function startNode(network, name) {
  const hub = network.hub(name)
  /** @type {string[]} */
  const heard = []
  /** @type {Map<string, Set<string>>} */
  const watchers = new Map()
  /** @type {Map<string, Buffer>} */
  const bodies = new Map()
  /** @param {string} link @param {import('../backbone.ts').Want} want @param {string} what */
  const wanted = (link, { key, held }, what) => {
    heard.push(`${what} ${key}${held ? ` ${held.version}` : ''}`)
    if (what === 'watch') watchers.set(key, (watchers.get(key) ?? new Set()).add(link))
    if (bodies.has(key)) hub.tell(link, key)
  }
  await hub.start({
    onWatch: (link, want) => wanted(link, want, 'watch'),
    onGet: (link, want) => wanted(link, want, 'get'),
    onUnwatch: (link, key) => {
      heard.push(`unwatch ${key}`)
      watchers.get(key)?.delete(link)
    },
    onCancelGet: (_, key) => heard.push(`cancelGet ${key}`),
    onRefresh: key => heard.push(`refresh ${key}`),
    onLinkLost: link => {
      heard.push('lost')
      for (const links of watchers.values()) links.delete(link)
    },
    answerFor: (_, key) => {
      const body = bodies.get(key)
      if (!body) return undefined
      const version = body.toString('latin1', 0, 20)
      return {
        type: 'value',
        key,
        version,
        ageMs: 0,
        maxAgeMs: 1_000,
        store: true,
        contentType: 'text/plain',
        format: 'text',
        body,
      }
    },
  })
  return {
    hub,
    heard,
    watching: (/** @type {string} */ key) => watchers.get(key)?.size ?? 0,
    /** @param {string} key @param {string | Buffer} content */
    put(key, content) {
      bodies.set(key, Buffer.from(content))
      for (const link of watchers.get(key) ?? []) hub.tell(link, key)
    },
  }
}

/** @param {ReturnType<typeof createMemoryBackbone>} network @param {string[]} nodes */
export async function startGateway(network, nodes) {
  /** @type {string[]} */
  const received = []
  /** @type {Map<string, import('../backbone.ts').Held>} */
  const holds = new Map()
  /** Whether each answer was one to a get. @type {boolean[]} */
  const got = []
  const backbone = network.backbone(nodes, {
    held: key => holds.get(key),
    onAnswer: (answer, isGot) => {
      got.push(isGot)
      if (answer.type === 'value') holds.set(answer.key, { version: answer.version, ageMs: answer.ageMs })
      received.push(answer.type === 'failed' ? answer.code : `${answer.key} ${answer.version}`)
    },
  })
  await backbone.start()
  await network.settle()
  return { backbone, received, got, holds }
}

export async function setup({ nodes = ['n1'] } = {}) {
  const network = createMemoryBackbone()
  const started = new Map()
  for (const name of nodes) started.set(name, await startNode(network, name))
  const gateway = await startGateway(network, nodes)
  return { network, node: started.get(nodes[0]), nodes: started, ...gateway }
}

/** A key owned by the first of the nodes. @param {string[]} nodes */
export function keyOfFirst(nodes) {
  const ownerOf = ownersAmong(nodes)
  let i = 0
  while (ownerOf(`a:${i}`) !== nodes[0]) i++
  return `a:${i}`
}

/** Wants of one kind, in any order. @param {string[]} heard @param {string} what */
export const count = (heard, what) => heard.filter(line => line.startsWith(what)).length
