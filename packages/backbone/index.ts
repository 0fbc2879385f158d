// The part of the backbone that other workspaces use.
export { FetcherUnavailable, REFUSED_BY_BACKEND } from './backbone.ts'
export { fnv1a } from './fnv1a.ts'
export { readNodes } from './gateway/nodes.ts'
export { GHOST_MS } from './gateway/rooms/presence.ts'
export { createRoomsBackbone } from './gateway/rooms/rooms-backbone.ts'
export { REMEMBERED_MS as REFRESHES_REMEMBERED_MS } from './gateway/values/recent-refreshes.ts'
export { createHub } from './hub/hub.ts'
export { joinKey, membersKey, readPresenceKey } from './wire/members-codec.ts'
export { gapFrom, HISTORY_BYTES_MAX, readHistoryKey, roomErrorCodes, roomsCodec } from './wire/rooms-codec.ts'
export { tokenDigest } from './wire/token-digest.ts'
export { ANONYMOUS_VIEWER, readViewerKey, viewerKey } from './wire/viewer-key.ts'
export {
  createZeromqBackbone,
  createZeromqHub,
  createZeromqRooms,
  createZeromqRoomsHub,
  hostsBeyondLoopback,
} from './zeromq/backbone-zeromq.ts'
export { createCurveKeyPair, curveKeyProblems, curvePairOf } from './zeromq/curve.ts'
export { hubCurveOf, hubKeyProblems, hubKeySettings } from './zeromq/hub-keys.ts'
export { receive } from './zeromq/receive.ts'
export { createWriter } from './zeromq/writer.ts'

/**
 * @typedef {import('./backbone.ts').Answer} Answer
 * @typedef {import('./backbone.ts').Backbone} Backbone
 * @typedef {import('./backbone.ts').BackboneEvents} BackboneEvents
 * @typedef {import('./backbone.ts').Credentials} Credentials
 * @typedef {import('./backbone.ts').Decision} Decision
 * @typedef {import('./backbone.ts').Confirmations} Confirmations
 * @typedef {import('./backbone.ts').Delta} Delta
 * @typedef {import('./wire/viewer-key.ts').Viewed} Viewed
 * @typedef {import('./backbone.ts').FailedAnswer} FailedAnswer
 * @typedef {import('./backbone.ts').Format} Format
 * @typedef {import('./backbone.ts').Held} Held
 * @typedef {import('./backbone.ts').Hub} Hub
 * @typedef {import('./backbone.ts').HubEvents} HubEvents
 * @typedef {import('./backbone.ts').KeptAnswer} KeptAnswer
 * @typedef {import('./backbone.ts').Next} Next
 * @typedef {import('./backbone.ts').Plan} Plan
 * @typedef {import('./gateway/rooms/rooms-backbone.ts').RoomsBackbone} RoomsBackbone
 * @typedef {import('./gateway/rooms/rooms-backbone.ts').MessageEvents} MessageEvents
 * @typedef {import('./gateway/rooms/rooms-backbone.ts').RoomsEvents} RoomsEvents
 * @typedef {import('./wire/rooms-codec.ts').Answer} RoomAnswer
 * @typedef {import('./wire/rooms-codec.ts').GapReason} GapReason
 * @typedef {import('./gateway/rooms/rooms-backbone.ts').History} History
 * @typedef {import('./wire/members-codec.ts').Join} Join
 * @typedef {import('./wire/members-codec.ts').Leaving} Leaving
 * @typedef {import('./wire/members-codec.ts').Member} Member
 * @typedef {import('./wire/members-codec.ts').MembersAnswer} MembersAnswer
 * @typedef {import('./wire/members-codec.ts').PresenceAnswer} PresenceAnswer
 * @typedef {import('./wire/rooms-codec.ts').Message} Message
 * @typedef {import('./wire/rooms-codec.ts').NotPublished} NotPublished
 * @typedef {import('./wire/rooms-codec.ts').Publish} PublishCommand
 * @typedef {import('./wire/rooms-codec.ts').Published} Published
 * @typedef {import('./wire/rooms-codec.ts').RoomErrorCode} RoomErrorCode
 * @typedef {import('./hub/hub.ts').Hub<import('./wire/rooms-codec.ts').Rooms>} RoomsHub
 * @typedef {import('./wire/rooms-codec.ts').Position} Position
 * @typedef {import('./wire/rooms-codec.ts').Rooms} Rooms
 */
