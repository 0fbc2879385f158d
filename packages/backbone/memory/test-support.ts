// Nodes and gateways on the in-process network, for the tests of both ends together.
import type { Held } from '../backbone.ts'
import { ownersAmong } from '../gateway/rendezvous.ts'
import { createMemoryBackbone } from './backbone-memory.ts'

interface Wanted {
  key: string
  position: Held | undefined
}

/** A node that remembers its events and answers each want with the latest value put into it. */
export async function startNode(network: ReturnType<typeof createMemoryBackbone>, name: string) {
  const hub = network.hub(name)
  const heard: string[] = []
  const watchers = new Map<string, Set<string>>()
  const bodies = new Map<string, Buffer>()
  let isCutOff = false
  const wanted = (link: string, { key, position }: Wanted, what: string) => {
    heard.push(`${what} ${key}${position ? ` ${position.version}` : ''}`)
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
    onNotice: (_, { keys }) => {
      for (const key of keys) heard.push(`refresh ${key}`)
    },
    onLinkLost: link => {
      heard.push('lost')
      for (const links of watchers.values()) links.delete(link)
    },
    answersFor: (_, key) => {
      const body = bodies.get(key)
      if (!body) return { answers: [], more: false }
      const version = body.toString('latin1', 0, 20)
      const answer = {
        type: 'value',
        key,
        version,
        ageMs: 0,
        maxAgeMs: 1_000,
        store: true,
        contentType: 'text/plain',
        format: 'text',
        body,
      } as const
      return { answers: [answer], more: false }
    },
    isCutOff: () => isCutOff,
  })
  return {
    hub,
    heard,
    cutOff(is: boolean) {
      isCutOff = is
    },
    watching: (key: string) => watchers.get(key)?.size ?? 0,
    put(key: string, content: string | Buffer) {
      bodies.set(key, Buffer.from(content))
      for (const link of watchers.get(key) ?? []) hub.tell(link, key)
    },
  }
}

export async function startGateway(network: ReturnType<typeof createMemoryBackbone>, nodes: string[]) {
  const received: string[] = []
  const holds = new Map<string, Held>()
  /** Whether each answer was one to a get. */
  const got: boolean[] = []
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

/** A key owned by the first of the nodes. */
export function keyOfFirst(nodes: string[]) {
  const ownerOf = ownersAmong(nodes)
  let i = 0
  while (ownerOf(`a:${i}`) !== nodes[0]) i++
  return `a:${i}`
}

/** Wants of one kind, in any order. */
export const count = (heard: string[], what: string) => heard.filter(line => line.startsWith(what)).length
