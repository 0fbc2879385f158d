// Routes each key to its owner among many nodes, and to another when that node dies. It knows no service; the codec
// knows the content.
import { type Containment, createOnceAMinute, createTurns, type World } from '@keycast/service'
import type { Codec, Service } from '../wire/codec.ts'
import { type CommandEnd, type Pending, unheard } from './commands.ts'
import { createHoldDown } from './hold-down.ts'
import { type Asked, createLink, type Dial, type Link, type LinkEvents, type Log } from './link.ts'
import { createOneLog } from './one-log.ts'
import { ownersAmong } from './rendezvous.ts'
import { isWanted, newWant, type Want } from './wants.ts'

/** Where nodes come from: calls `found` with the names of all nodes there are, now and whenever they change. */
export interface NodeSource {
  start: (found: (names: string[]) => void) => Promise<void>
  stop: () => void
}

/**
 * `judged`: the node has spoken, or was silent long enough to be called dead. Until then it counts as alive, so that a
 * gateway that starts does not send all keys to the node that answers first.
 */
interface Node<S extends Service> {
  link: Link<S>
  judged: boolean
  listed: boolean
  holdDown: ReturnType<typeof createHoldDown>
}

/**
 * `onNode`: a node is heard for the first time, or again, or was perhaps started anew. `onRouted`: the nodes that keys go to
 * may have changed.
 */
type RouterEvents<S extends Service> = Omit<LinkEvents<S>, 'onAlive' | 'onForgotten' | 'onDead'> & {
  onNode?: (link: Link<S>) => void
  onRouted?: () => void
}

interface Options<S extends Service> extends World {
  codec: Codec<S>
  /** Keys with the same place go to the same node. */
  placeOf?: (key: string) => string
  nodeSource: NodeSource
  dialOf: (name: string) => Dial
  events: RouterEvents<S>
  containment?: Containment
  log: Log
}

export function createRouter<S extends Service>({
  placeOf = key => key,
  nodeSource,
  dialOf,
  events,
  ...given
}: Options<S>) {
  const { now, after, turn, log } = given
  const nodes = new Map<string, Node<S>>()
  const wants = new Map<string, Want<Link<S>>>()
  /** Names of the nodes keys are routed to. */
  let candidates: string[] = []
  let ownerOf = ownersAmong(candidates)
  /** Walks over all wants and gives each to the owner at that moment. */
  let moving: Iterator<Want<Link<S>>> | undefined
  let isMovedAgain = false // the owners changed during the walk: keys passed already are checked once more
  const moves = createTurns({ now, turn, step: moveNext })
  const oneLog = createOneLog()
  const isLogDue = createOnceAMinute(now)
  let stopHolds = () => {}
  let lastCommand = 0
  let started = false
  let stopped = false

  async function start() {
    await nodeSource.start(onNodes)
    started = true
  }

  async function stop() {
    stopped = true
    nodeSource.stop()
    stopHolds()
    for (const { link } of nodes.values()) link.stop()
    nodes.clear()
  }

  function onNodes(names: string[]) {
    if (stopped) return // of a look-up that was under way
    for (const node of nodes.values()) node.listed = false
    for (const name of names) {
      const node = nodes.get(name) ?? addNode(name)
      node.listed = true
    }
    route()
  }

  function addNode(name: string) {
    log.info({ node: name }, 'linking to a node')
    const link: Link<S> = createLink({
      ...given,
      wants,
      node: name,
      dial: dialOf(name),
      events: {
        ...events,
        admits: (theirs, at) => admits(name, theirs, at),
        onReach: isCutOff => onReach(name, isCutOff),
        onLogAt: at => oneLog.note(name, at),
        logBefore: () => oneLog.before(name),
        onAlive: () => onJudged(name, false),
        onForgotten: () => events.onNode?.(link),
        onDead: wasAlive => onJudged(name, wasAlive),
      },
    })
    // A node found later must speak before it is given keys. At the start no other node could take them meanwhile.
    const node = { link, judged: started, listed: true, holdDown: createHoldDown({ now }) }
    nodes.set(name, node)
    link.start()
    return node
  }

  /** @param theirs its log */
  function admits(name: string, theirs: string | undefined, at: number | undefined) {
    const before = oneLog.inUse
    const isStarting = [...nodes.values()].some(({ judged }) => !judged)
    const isAdmitted = oneLog.admits(name, theirs, at, isStarting)
    const { inUse } = oneLog
    if (inUse !== before) {
      if (before !== undefined) log.warn({ node: name, before, inUse }, 'another log is in use')
      // They were used until now, and are not asked again before their next beats.
      for (const other of oneLog.others()) {
        nodes.get(other.node)?.link.setAside()
        reportOther(other)
      }
    }
    const known = oneLog.before(name)
    if (known && isLogDue(`back ${name}`)) {
      log.error(
        { node: name, log: theirs, at, before: known.logAt },
        'the log of a node is in an older state than it was: the node is told, and not used until it has another id',
      )
    } else if (!known && !isAdmitted && theirs !== undefined) reportOther({ node: name, log: theirs })
    return isAdmitted
  }

  function reportOther({ node, log: theirs }: { node: string; log: string }) {
    if (!isLogDue(`log ${node}`)) return
    log.error(
      { node, theirs, inUse: oneLog.inUse },
      'a node keeps another log than the one in use, and is not used: name nodes of one log only',
    )
  }

  /** Nodes that answer and are not used for their log. */
  function otherLogs() {
    const others = oneLog.others().filter(({ node }) => nodes.get(node)?.link.isSetAside)
    return others.map(({ node }) => node)
  }

  function onJudged(name: string, wasAlive: boolean) {
    const node = nodes.get(name)
    if (!node) return
    const { alive } = node.link
    const changed = !node.judged || wasAlive !== alive
    node.judged = true
    if (alive) {
      node.holdDown.onHeard()
      events.onNode?.(node.link)
    } else if (wasAlive) node.holdDown.onLost()
    route()
    if (!changed) return
    const heldMs = alive ? Math.round(node.holdDown.heldMs()) : 0
    if (heldMs > 0)
      log.warn({ ...node.link.about(), heldMs }, 'a node that was lost answers again: it gets its keys later')
    else if (alive) log.info({ ...node.link.about(), alive }, 'a node answers')
    else log.info({ node: name, alive }, 'a node does not answer')
  }

  function onReach(name: string, isCutOff: boolean) {
    if (nodes.get(name)?.holdDown.onReach(isCutOff)) route()
  }

  /** Nodes that cannot reach their log give their keys to others that can. */
  function setAsideCutOff() {
    const all = [...nodes]
    const isReached = all.some(([, { link, holdDown }]) => link.alive && holdDown.canReplace())
    for (const [name, { link, holdDown }] of all) {
      const isAside = isReached && link.alive && holdDown.isCutOff()
      if (holdDown.setAside(isAside) && isAside)
        log.warn({ node: name }, 'a node cannot reach its log, and others can: they have its keys meanwhile')
    }
  }

  const isHeld = ({ link, holdDown }: Node<S>) => link.alive && holdDown.heldMs() > 0

  /**
   * A node that is held down serves where no other does. Where all are lost at once, the fault is most likely on this
   * gateway's side: the first one to be heard again must not get all keys while the others are held down.
   */
  function forgiveIfNoneIsFree() {
    for (const node of nodes.values()) if (node.link.alive && !isHeld(node)) return
    for (const { holdDown } of nodes.values()) holdDown.forgive()
  }

  function nodesHeld() {
    let held = 0
    for (const node of nodes.values()) if (isHeld(node)) held++
    return held
  }

  /** Routes again when the next hold is over. */
  function watchHolds() {
    stopHolds()
    const heldMs = [...nodes.values()].filter(isHeld).map(({ holdDown }) => holdDown.heldMs())
    const nextMs = Math.min(...heldMs) // of one that is cut off, each beat tells
    if (Number.isFinite(nextMs)) stopHolds = after(nextMs, route)
  }

  /**
   * A node that is no longer listed is kept while it speaks and no listed node does: the name server may be wrong.
   * Otherwise it is dropped: gateways that start later do not know it, and would ask another node.
   *
   * @returns the work it had not done
   */
  function removeGone(): Pending<S['Result']>[] {
    const commands = []
    const isReplaced = [...nodes.values()].some(({ listed, link }) => listed && link.alive)
    for (const [name, { listed, link }] of nodes) {
      if (listed || (link.alive && !isReplaced)) continue
      log.info({ node: name }, 'a node is gone')
      commands.push(...link.takeCommands(() => true))
      link.stop()
      nodes.delete(name)
      oneLog.forget(name)
    }
    return commands
  }

  /** Gives every key to its present owner: new wants at once, the others turn by turn. */
  function route() {
    const orphans = removeGone()
    setAsideCutOff()
    forgiveIfNoneIsFree()
    watchHolds()
    const names = []
    for (const [name, node] of nodes) if (node.link.alive ? !isHeld(node) : !node.judged) names.push(name)
    if (names.join() !== candidates.join()) {
      candidates = names
      ownerOf = ownersAmong(names)
      // The walk does not start again: if nodes came and went all the time, the last keys would never have their turn.
      if (moving) isMovedAgain = true
      else moving = wants.values()
      moves.start()
      moveCommands()
    }
    for (const command of orphans) handOver(command)
    events.onRouted?.()
  }

  /**
   * Commands under way go to the keys' new owners, before later ones: commands of one key keep their order, also over a
   * node's death. A node that has executed one already recognizes its id.
   */
  function moveCommands() {
    const moved: Pending<S['Result']>[] = []
    for (const [name, { link }] of nodes) {
      moved.push(...link.takeCommands(key => ![undefined, name].includes(ownerOf(placeOf(key)))))
    }
    for (const command of moved) handOver(command)
  }

  function handOver(command: Pending<S['Result']>) {
    const link = linkOf(command.key)
    if (link) link.takeOver(command)
    else command.done(unheard(command))
  }

  /** Gives one key to its owner. @returns whether there are more */
  function moveNext(): boolean {
    if (!moving || stopped) return false
    const { done, value } = moving.next()
    if (!done) move(value)
    else if (isMovedAgain) {
      isMovedAgain = false
      moving = wants.values()
    } else moving = undefined
    return moving !== undefined
  }

  function move(before: Want<Link<S>>) {
    const { key, watch, get } = before
    const link = linkOf(key)
    if (link === before.link) return
    if (isWanted(before)) wants.set(key, newWant(key, link))
    else wants.delete(key)
    before.link?.drop(before)
    if (watch) want(key, 'watch')
    if (get) want(key, 'get')
  }

  function want(key: string, what: 'watch' | 'get') {
    const entry = wants.get(key) ?? newWant(key, linkOf(key))
    wants.set(key, entry)
    if (entry.link) entry.link[what](key)
    else entry[what] = true
  }

  function unwant(key: string, what: 'watch' | 'get') {
    const entry = wants.get(key)
    if (!entry) return
    if (entry.link) return what === 'watch' ? entry.link.unwatch(key) : entry.link.cancelGet(key)
    entry[what] = false
    if (!isWanted(entry)) wants.delete(key)
  }

  /** @returns to the node that owns the key now */
  function linkOf(key: string): Link<S> | undefined {
    const owner = ownerOf(placeOf(key))
    return owner === undefined ? undefined : nodes.get(owner)?.link
  }

  /** Whether the key's owner answers now. */
  const isAlive = (key: string) => linkOf(key)?.alive === true

  return {
    start,
    stop,
    watch: (key: string) => want(key, 'watch'),
    unwatch: (key: string) => unwant(key, 'watch'),
    get: (key: string) => want(key, 'get'),
    cancelGet: (key: string) => unwant(key, 'get'),
    /** A standing watch is said again: its payload or payer changed. */
    renewWatch: (key: string) => linkOf(key)?.renewWatch(key),
    /** As a link's. Ends as unsaid at once where no node can be asked. If the owner changes meanwhile, that is asked. */
    command(asked: Asked<S>, done: (end: CommandEnd<S['Result']>) => void) {
      const link = linkOf(asked.key)
      if (link) link.command(String(++lastCommand), asked, done)
      else done({ type: 'unsaid' })
    },
    isAlive,
    linkOf,
    /** The links to all nodes that some gateway may route keys to: another one may not hold a node down. */
    links: () => [...nodes.values()].flatMap(({ link, judged }) => (link.alive || !judged ? link : [])),
    ownerOf: (key: string) => ({ node: ownerOf(placeOf(key)), alive: isAlive(key) }),
    /** The log in use, and the nodes that answer, keep another and are not used. */
    logs: () => ({ inUse: oneLog.inUse, others: otherLogs() }),
    nodesAlive: () => {
      let alive = 0
      for (const { link } of nodes.values()) if (link.alive) alive++
      return alive
    },
    nodesHeld,
  }
}

export type Router<S extends Service> = ReturnType<typeof createRouter<S>>
