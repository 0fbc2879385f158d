// Puts the kinds of topics together, and what subscribes sessions to them.
import type { AllNamespaces } from '@keycast/service'
import type { Links } from '../links.ts'
import { assembleRooms } from './rooms/index.ts'
import { createTopics } from './topics.ts'
import { assembleValues } from './values/index.ts'

export type TopicsPart = ReturnType<typeof assembleTopics>

type Deps = Omit<
  Parameters<typeof assembleValues>[0] & Parameters<typeof assembleRooms>[0],
  'backbone' | 'namespaces'
> & {
  namespaces: Pick<AllNamespaces, 'values' | 'journal'>
  links: Links
}

export function assembleTopics({ namespaces, links, ...deps }: Deps) {
  const { gate, outbox, counts } = deps
  const ofValues = assembleValues({ ...deps, namespaces: namespaces.values, backbone: links.values })
  const ofRooms = assembleRooms({ ...deps, namespaces: namespaces.journal, backbone: links.rooms })
  const { rooms, joins } = ofRooms
  const openValue = ofValues.openWatched
  const topics = createTopics({ namespaces: namespaces.journal, gate, openValue, rooms, outbox, counts })

  return {
    ...ofValues,
    ...ofRooms,
    topics,
    events: { values: ofValues.events, rooms: ofRooms.events },
    holders: { subscribe: topics.holder, join: joins, members: ofRooms.watcher },

    sweep() {
      ofValues.sweep()
      ofRooms.sweep()
    },

    stats: () => ({ ...ofValues.stats(), ...ofRooms.stats(), ...topics.stats() }),
  }
}
