// keycast.yaml while a service runs: looks at the file again and again, as mounted volumes and editors replace it in ways
// that no watch reports alike, and has a new one checked whole before anything of it is taken over.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Log } from './log.ts'
import type { MetricMakers } from './metrics/metrics.ts'
import { Misconfigured } from './misconfigured.ts'
import type { World } from './world.ts'

/** How often the file is looked at. One that is written in parts is taken over once it was the same twice. */
const CONFIG_LOOK_MS = 1_000

/** As long as a version of a value: enough to tell files apart, and to be read aloud. */
const HASH_CHARACTERS = 12

interface Deps extends Pick<World, 'every'> {
  path: string
  /**
   * Checks a file and takes it over, whole or not at all.
   *
   * @param text `undefined`: it could not be read
   * @throws {Misconfigured} which names every bad field
   */
  takeOver: (text: string | undefined) => unknown
  metrics: Pick<MetricMakers, 'count' | 'read'>
  log: Pick<Log, 'info' | 'error'>
  /** The process, unless a test says otherwise. */
  signals?: {
    on: (signal: 'SIGHUP', run: () => void) => unknown
  }
}

/** @returns `text` is what a service that starts reads; `start` begins to look for another */
export function createConfiguration({ path, takeOver, metrics, log, every, signals = process }: Deps) {
  let inForce = textNow()
  /** As it was seen last, and whether that was taken over, refused, or is still to be judged. */
  let seen = inForce
  let isJudged = true
  let looking: Promise<void> | undefined
  let isAskedAgain = false
  let stopLooking = () => {}
  const refused = metrics.count(
    'config_refused_total',
    'Files at KEYCAST_CONFIG that were not taken over: the log says why, and the one before is in force.',
  )
  metrics.read(
    'config_info',
    '1, with the hash of the keycast.yaml in force, which is the same in every service.',
    () => [{ labels: { hash: hashOf(inForce) }, value: 1 }],
  )

  /** @returns `undefined` where it cannot be read: whoever reads it next says why */
  function textNow() {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return undefined
    }
  }

  /** @param isAsked by an operator: the files that variables name may have changed, though this one has not */
  function look(isAsked: boolean) {
    if (looking) isAskedAgain ||= isAsked
    else looking = lookNow(isAsked)
  }

  async function lookNow(isAsked: boolean): Promise<void> {
    const text = await readFile(path, 'utf8').catch(() => undefined)
    const isSettled = text === seen
    if (!isSettled) isJudged = text === inForce
    if (!isSettled && isJudged) log.info({ config: hashOf(text), path }, 'keycast.yaml is again the one in force')
    seen = text
    if (isAsked || (isSettled && !isJudged)) await judge(text)
    if (isAskedAgain) {
      isAskedAgain = false
      return lookNow(true)
    }
    looking = undefined
  }

  async function judge(text: string | undefined) {
    isJudged = true
    const hash = hashOf(text)
    try {
      await takeOver(text)
      inForce = text
      log.info({ config: hash, path }, 'keycast.yaml was taken over')
    } catch (error) {
      refused()
      const why = error instanceof Misconfigured ? error.message : (error as Error).stack
      log.error(
        { config: hash, inForce: hashOf(inForce), path, why },
        'keycast.yaml was not taken over: nothing changed',
      )
    }
  }

  /** Where nobody listens, the signal ends the process. One that comes while the service starts is due at the first look. */
  let onSignal = () => {
    isAskedAgain = true
  }
  signals.on('SIGHUP', () => onSignal())

  return {
    text: inForce,
    hash: () => hashOf(inForce),
    /** Resolves once the look under way is over, if there is one. */
    looked: async () => looking,
    start() {
      onSignal = () => look(true)
      stopLooking = every(CONFIG_LOOK_MS, () => look(false))
    },
    stop() {
      onSignal = () => {}
      stopLooking()
    },
  }
}

const hashOf = (text = '') => createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARACTERS)
