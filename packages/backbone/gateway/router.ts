// Routes each key to its owner among many nodes, and to another when that node dies. It knows no service; the codec
// knows the content.
import { createOnceAMinute, createTurns } from '@keycast/service'
import { unheard } from './commands.ts'
import { createHoldDown } from './hold-down.ts'
import { createLink } from './link.ts'
import { createOneLog } from './one-log.ts'
import { ownersAmong } from './rendezvous.ts'

/**
 * @typedef {import('../wire/codec.ts').Service} Service
 *
 * Where nodes come from: calls `found` with the names of all nodes there are, now and whenever they change.
 * @typedef {{ start: (found: (names: string[]) => void) => Promise<void>, stop: () => void }} NodeSource
 *
 */

/**
 * The wants of a key, and the link to the node that was asked. A link and not a name: a node that is gone may be found
 * again under its name, and was not asked then.
 *
 * @template {Service} S
 * @typedef {{ watch: boolean, get: boolean, link: import('./link.ts').Link<S> | undefined }} Want
 */

/**
 * `judged`: the node has spoken, or was silent long enough to be called dead. Until then it counts as alive, so that a
 * gateway that starts does not send all keys to the node that answers first. `alive`: as its link last said.
 *
 * @template {Service} S
 * @typedef {{ link: import('./link.ts').Link<S>, judged: boolean, alive: boolean, listed: boolean,
 *   holdDown: ReturnType<typeof createHoldDown> }} Node
 */

/**
 * @template {Service} S
 * @typedef {Omit<import('./link.ts').LinkEvents<S>, 'onAlive' | 'onDead' | 'onAnswer' | 'onHeads'> & {
 *   onAnswer: (answer: S['Answer'], isGot: boolean, link: import('./link.ts').Link<S>) => void,
 *   onHeads?: (heads: S['Heads'], link: import('./link.ts').Link<S>) => void,
 *   onNode?: (link: import('./link.ts').Link<S>) => void, onRouted?: () => void }} RouterEvents
 *   `onNode`: a node is heard for the first time, or again. `onRouted`: the nodes that keys go to may have changed
 */

/** Precision of the time at which a node that is held down gets its keys. */
const HOLD_CHECK_MS = 250

/**
 * @template {Service} S
 * @param {object} options
 * @param {import('../wire/codec.ts').Codec<S>} options.codec
 * @param {(key: string) => string} [options.placeOf] keys with the same place go to the same node
 * @param {NodeSource} options.nodeSource
 * @param {(name: string) => import('./link.ts').Dial} options.dialOf
 * @param {RouterEvents<S>} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('./link.ts').Log} options.log
 */
export function createRouter({
  codec,
  placeOf = key => key,
  nodeSource,
  dialOf,
  events,
  containment,
  now,
  every,
  log,
}) {
  /** @type {Map<string, Node<S>>} */
  const nodes = new Map()
  /** @type {Map<string, Want<S>>} */
  const wants = new Map()
  /** Names of the nodes keys are routed to. @type {string[]} */
  let candidates = []
  let ownerOf = ownersAmong(candidates)
  /**
   * Walks over all wants and gives each to the owner at that moment.
   *
   * @type {Iterator<[string, Want<S>]> | undefined}
   */
  let moving
  let isMovedAgain = false // the owners changed during the walk: keys passed already are checked once more
  const moves = createTurns({ now, step: moveNext })
  const oneLog = createOneLog()
  const isLogDue = createOnceAMinute(now)
  let stopHoldChecks = () => {}
  let started = false
  let stopped = false

  async function start() {
    await nodeSource.start(onNodes)
    started = true
  }

  async function stop() {
    stopped = true
    nodeSource.stop()
    stopHoldChecks()
    for (const { link } of nodes.values()) link.stop()
    nodes.clear()
  }

  /** @param {string[]} names */
  function onNodes(names) {
    if (stopped) return // of a look-up that was under way
    for (const node of nodes.values()) node.listed = false
    for (const name of names) {
      const node = nodes.get(name) ?? addNode(name)
      node.listed = true
    }
    route()
  }

  /** @param {string} name */
  function addNode(name) {
    log.info({ node: name }, 'linking to a node')
    /** @type {import('./link.ts').Link<S>} */
    const link = createLink({
      codec,
      dial: dialOf(name),
      events: {
        ...events,
        onAnswer: (answer, isGot) => {
          if (isGot) endGet(answer.key)
          events.onAnswer(answer, isGot, link)
        },
        onHeads: heads => events.onHeads?.(heads, link),
        admits: (theirs, at) => admits(name, theirs, at),
        onLogAt: at => oneLog.note(name, at),
        logBefore: () => oneLog.before(name),
        onAlive: () => onJudged(name, 'a node answers'),
        onDead: () => onJudged(name, 'a node does not answer'),
      },
      containment,
      now,
      every,
      log,
    })
    // A node found later must speak before it is given keys. At the start no other node could take them meanwhile.
    const node = { link, judged: started, alive: false, listed: true, holdDown: createHoldDown({ now }) }
    nodes.set(name, node)
    link.start()
    return node
  }

  /** @param {string} name @param {string | undefined} theirs its log @param {number | undefined} at */
  function admits(name, theirs, at) {
    const before = oneLog.inUse
    const isStarting = [...nodes.values()].some(({ judged }) => !judged)
    const isAdmitted = oneLog.admits(name, theirs, at, isStarting)
    const { inUse } = oneLog
    if (inUse !== before) {
      if (before !== undefined) log.warn({ node: name, before, inUse }, 'another log is in use')
      for (const other of oneLog.others()) nodes.get(other)?.link.setAside()
    }
    const known = oneLog.before(name)
    if (known && isLogDue(`back ${name}`)) {
      log.error(
        { node: name, log: theirs, at, before: known.logAt },
        'the log of a node is in an older state than it was: the node is told, and not used until it has another id',
      )
    } else if (!known && !isAdmitted && isLogDue(`log ${name}`)) {
      log.error(
        { node: name, theirs, inUse },
        'a node keeps another log than the one in use, and is not used: name nodes of one log only',
      )
    }
    return isAdmitted
  }

  /** @param {string} name @param {string} what */
  function onJudged(name, what) {
    const node = nodes.get(name)
    if (!node) return
    const { alive } = node.link
    const changed = !node.judged || node.alive !== alive
    node.judged = true
    if (changed) {
      if (alive) node.holdDown.onHeard()
      else if (node.alive) node.holdDown.onLost()
      node.alive = alive
      if (alive) events.onNode?.(node.link)
    }
    route()
    if (!changed) return
    const heldMs = alive ? Math.round(node.holdDown.heldMs()) : 0
    if (heldMs > 0) log.warn({ node: name, heldMs }, 'a node that was lost answers again: it gets its keys later')
    else log.info({ node: name, alive }, what)
  }

  /** @param {Node<S>} node */
  const isHeld = ({ alive, holdDown }) => alive && holdDown.heldMs() > 0

  /**
   * A node that is held down serves where no other does. Where all are lost at once, the fault is most likely on this
   * gateway's side: the first one to be heard again must not get all keys while the others are held down.
   */
  function forgiveIfNoneIsFree() {
    for (const node of nodes.values()) if (node.alive && !isHeld(node)) return
    for (const { holdDown } of nodes.values()) holdDown.forgive()
  }

  function nodesHeld() {
    let held = 0
    for (const node of nodes.values()) if (isHeld(node)) held++
    return held
  }

  /** Routes again when a hold is over. */
  function watchHolds() {
    const held = nodesHeld()
    stopHoldChecks()
    stopHoldChecks = held === 0 ? () => {} : every(HOLD_CHECK_MS, () => nodesHeld() !== held && route())
  }

  /**
   * A node that is no longer listed is kept while it speaks and no listed node does: the name server may be wrong.
   * Otherwise it is dropped: gateways that start later do not know it, and would ask another node.
   *
   * @returns {import('./commands.ts').Pending<S['Result']>[]} the work it had not done
   */
  function removeGone() {
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
    forgiveIfNoneIsFree()
    watchHolds()
    const names = []
    for (const [name, node] of nodes) if (node.alive ? !isHeld(node) : !node.judged) names.push(name)
    if (names.join() !== candidates.join()) {
      candidates = names
      ownerOf = ownersAmong(names)
      // The walk does not start again: if nodes came and went all the time, the last keys would never have their turn.
      if (moving) isMovedAgain = true
      else moving = wants.entries()
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
    /** @type {import('./commands.ts').Pending<S['Result']>[]} */
    const moved = []
    for (const [name, { link }] of nodes) {
      moved.push(...link.takeCommands(key => ![undefined, name].includes(ownerOf(key))))
    }
    for (const command of moved) handOver(command)
  }

  /** @param {import('./commands.ts').Pending<S['Result']>} command */
  function handOver(command) {
    const link = linkOf(command.key)
    if (link) link.takeOver(command)
    else command.done(unheard(command))
  }

  /** Gives one key to its owner. @returns {boolean} whether there are more */
  function moveNext() {
    if (!moving || stopped) return false
    const { done, value } = moving.next()
    if (!done) move(...value)
    else if (isMovedAgain) {
      isMovedAgain = false
      moving = wants.entries()
    } else moving = undefined
    return moving !== undefined
  }

  /** @param {string} key @param {Want<S>} want */
  function move(key, want) {
    const link = linkOf(key)
    if (link === want.link) return
    want.link?.drop(key)
    want.link = link
    if (want.watch) link?.watch(key)
    if (want.get) link?.get(key)
  }

  /** @param {string} key @param {'watch' | 'get'} what */
  function want(key, what) {
    const entry = wants.get(key) ?? { watch: false, get: false, link: linkOf(key) }
    entry[what] = true
    wants.set(key, entry)
    entry.link?.[what](key)
  }

  /** @param {string} key */
  function endGet(key) {
    const entry = wants.get(key)
    if (!entry) return
    entry.get = false
    if (!entry.watch) wants.delete(key)
  }

  /** @param {string} key @param {'watch' | 'get'} what */
  function unwant(key, what) {
    const entry = wants.get(key)
    if (!entry) return
    entry[what] = false
    if (!entry.watch && !entry.get) wants.delete(key)
    if (what === 'watch') entry.link?.unwatch(key)
    else entry.link?.cancelGet(key)
  }

  /** @param {string} key @returns {import('./link.ts').Link<S> | undefined} to the node that owns the key now */
  function linkOf(key) {
    const owner = ownerOf(placeOf(key))
    return owner === undefined ? undefined : nodes.get(owner)?.link
  }

  return {
    start,
    stop,
    /** @param {string} key */
    watch: key => want(key, 'watch'),
    /** @param {string} key */
    unwatch: key => unwant(key, 'watch'),
    /** @param {string} key */
    get: key => want(key, 'get'),
    /** @param {string} key */
    cancelGet: key => unwant(key, 'get'),
    linkOf,
    /** The links to all nodes that some gateway may route keys to: another one may not hold a node down. */
    links: () => [...nodes.values()].flatMap(({ link, alive, judged }) => (alive || !judged ? link : [])),
    /** @param {string} key */
    ownerOf: key => ({ node: ownerOf(placeOf(key)), alive: linkOf(key)?.alive === true }),
    /** The log in use, and the nodes that answer, keep another and are not used. */
    logs: () => ({ inUse: oneLog.inUse, others: oneLog.others().filter(name => nodes.get(name)?.link.isSetAside) }),
    nodesAlive: () => {
      let alive = 0
      for (const { link } of nodes.values()) if (link.alive) alive++
      return alive
    },
    nodesHeld,
  }
}
