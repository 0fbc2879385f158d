// The part of the backbone that other workspaces use.
export { FetcherUnavailable, REFUSED_BY_BACKEND } from './backbone.js'
export { fnv1a } from './fnv1a.js'
export { readNodes } from './gateway/nodes.js'
export { GHOST_MS } from './gateway/rooms/presence.js'
export { createRoomsBackbone } from './gateway/rooms/rooms-backbone.js'
export { REMEMBERED_MS as REFRESHES_REMEMBERED_MS } from './gateway/values/recent-refreshes.js'
export { createHub } from './hub/hub.js'
export { joinKey, membersKey, readPresenceKey } from './wire/members-codec.js'
export { gapFrom, HISTORY_BYTES_MAX, readHistoryKey, roomErrorCodes, roomsCodec } from './wire/rooms-codec.js'
export { tokenDigest } from './wire/token-digest.js'
export { ANONYMOUS_VIEWER, readViewerKey, viewerKey } from './wire/viewer-key.js'
export {
  createZeromqBackbone,
  createZeromqHub,
  createZeromqRooms,
  createZeromqRoomsHub,
  hostsBeyondLoopback,
} from './zeromq/backbone-zeromq.js'
export { createCurveKeyPair, curveKeyProblems, curvePairOf } from './zeromq/curve.js'
export { hubCurveOf, hubKeyProblems, hubKeySettings } from './zeromq/hub-keys.js'
export { receive } from './zeromq/receive.js'
export { createWriter } from './zeromq/writer.js'

/**
 * @typedef {import('./backbone.js').Answer} Answer
 * @typedef {import('./backbone.js').Backbone} Backbone
 * @typedef {import('./backbone.js').BackboneEvents} BackboneEvents
 * @typedef {import('./backbone.js').Credentials} Credentials
 * @typedef {import('./backbone.js').Decision} Decision
 * @typedef {import('./backbone.js').Confirmations} Confirmations
 * @typedef {import('./backbone.js').Delta} Delta
 * @typedef {import('./wire/viewer-key.js').Viewed} Viewed
 * @typedef {import('./backbone.js').FailedAnswer} FailedAnswer
 * @typedef {import('./backbone.js').Format} Format
 * @typedef {import('./backbone.js').Held} Held
 * @typedef {import('./backbone.js').Hub} Hub
 * @typedef {import('./backbone.js').HubEvents} HubEvents
 * @typedef {import('./backbone.js').KeptAnswer} KeptAnswer
 * @typedef {import('./backbone.js').Next} Next
 * @typedef {import('./backbone.js').Plan} Plan
 * @typedef {import('./gateway/rooms/rooms-backbone.js').RoomsBackbone} RoomsBackbone
 * @typedef {import('./gateway/rooms/rooms-backbone.js').MessageEvents} MessageEvents
 * @typedef {import('./gateway/rooms/rooms-backbone.js').RoomsEvents} RoomsEvents
 * @typedef {import('./wire/rooms-codec.js').Answer} RoomAnswer
 * @typedef {import('./wire/rooms-codec.js').GapReason} GapReason
 * @typedef {import('./gateway/rooms/rooms-backbone.js').History} History
 * @typedef {import('./wire/members-codec.js').Join} Join
 * @typedef {import('./wire/members-codec.js').Leaving} Leaving
 * @typedef {import('./wire/members-codec.js').Member} Member
 * @typedef {import('./wire/members-codec.js').MembersAnswer} MembersAnswer
 * @typedef {import('./wire/members-codec.js').PresenceAnswer} PresenceAnswer
 * @typedef {import('./wire/rooms-codec.js').Message} Message
 * @typedef {import('./wire/rooms-codec.js').NotPublished} NotPublished
 * @typedef {import('./wire/rooms-codec.js').Publish} PublishCommand
 * @typedef {import('./wire/rooms-codec.js').Published} Published
 * @typedef {import('./wire/rooms-codec.js').RoomErrorCode} RoomErrorCode
 * @typedef {import('./hub/hub.js').Hub<import('./wire/rooms-codec.js').Rooms>} RoomsHub
 * @typedef {import('./wire/rooms-codec.js').Position} Position
 * @typedef {import('./wire/rooms-codec.js').Rooms} Rooms
 */
