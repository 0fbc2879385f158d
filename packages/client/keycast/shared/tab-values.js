// A tab's values: an entry for each key, shared by all of the tab's handles of it.
import { createListeners } from '../listeners.js'
import { nothing } from '../values/entry.js'
import { createHandle } from '../values/handle.js'
import { unpackError } from './messages.js'

/** @param {import('./tab.js').Worker} worker */
export function createTabValues({ link, open, shut, say }) {
  /** @type {Map<string, any>} */
  const entries = new Map()

  /** @param {string} key */
  function createEntry(key) {
    /** @type {any} */
    const entry = {
      key,
      link,
      state: nothing,
      news: undefined,
      order: undefined,
      handles: 0,
      listeners: createListeners(() => (entry.state === nothing ? undefined : entry.state)),
      get ended() {
        return entry.state.health === 'ended'
      },
      id: 0,
      /** @param {any} message */
      take({ state, order, isNews, unreadable, ...fields }) {
        const before = entry.state
        entry.order = order
        const isClear = !(state.stale || state.error)
        // A worker that comes after one that died knows nothing yet: what is shown stays meanwhile.
        const isUnknown = state.version === undefined && before.version !== undefined
        const isSame = state.version === before.version && !(before.stale || before.error)
        if (isClear && (isUnknown || isSame)) return entry.stand(state.health)
        entry.state = { ...state, error: state.error && unpackError(state.error) }
        const read = () => {
          if (unreadable) throw new SyntaxError(unreadable)
          return fields.value
        }
        // The value travels only where it is another.
        const property =
          'value' in fields || unreadable ? { get: read } : Object.getOwnPropertyDescriptor(before, 'value')
        Object.defineProperty(entry.state, 'value', { enumerable: true, ...property })
        if (isNews) entry.news = entry.state
        entry.listeners.tell(entry.state)
      },
      /** Nothing else is another. @param {import('../errors.js').Health} health */
      stand(health) {
        if (health !== entry.state.health) entry.become({ health })
      },
      /** @param {object} changes */
      become(changes) {
        // A spread would read the value, which may throw.
        const state = Object.defineProperties({}, Object.getOwnPropertyDescriptors(entry.state))
        entry.state = Object.assign(state, changes)
        entry.listeners.tell(entry.state)
      },
    }
    entry.id = open({
      // A worker that comes next is asked for nothing older than what is shown.
      ask: () => ({ key, order: entry.order }),
      take: entry.take,
      wait() {
        if (!entry.ended) entry.stand('loading')
      },
      end(error) {
        entry.become({ error, health: 'ended' })
      },
    })
    entries.set(key, entry)
    return entry
  }

  /** @param {string} key */
  function value(key) {
    const known = entries.get(key)
    // A new handle asks again for a key whose subscription has ended.
    if (known?.state.error && !known.state.error.subscribed) say({ retry: known.id })
    const entry = known ?? createEntry(key)
    entry.handles += 1
    return createHandle(
      entry,
      () => say({ retry: entry.id }),
      () => {
        entry.handles -= 1
        if (entry.handles > 0) return
        entries.delete(key)
        shut(entry.id)
      },
    )
  }

  return {
    value,
    /** @param {string} key */
    peek: key => entries.get(key)?.state ?? nothing,
  }
}
