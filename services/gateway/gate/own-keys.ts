// The keys whose values differ per user (`per: user`): each viewer's value is stored and asked for under a key of its own.
import { viewerKey } from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'

interface Namespaces {
  get(name: string): { readonly isPerUser?: boolean } | undefined
}

export function createOwnKeys(namespaces: Namespaces) {
  /** Whether each user has a value of their own under the key. @param key that passed the gate */
  const areOf = (key: string) => namespaces.get(namespaceOf(key))?.isPerUser === true

  /** The key under which a viewer's value is stored and asked for. */
  function wireKeyOf(viewer: { readonly name: string } | undefined, key: string) {
    if (!areOf(key)) return key
    // No viewer: the caller forgot to say for whom it asks.
    if (!viewer) throw new Error(`no viewer for ${key}`)
    return viewerKey(key, viewer.name)
  }

  return { areOf, wireKeyOf }
}
