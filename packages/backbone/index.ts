// The part of the backbone that other workspaces use.
import type { Hub as HubOf } from './hub/node.ts'
import type { Rooms } from './wire/rooms-codec.ts'
import type { Values } from './wire/values-codec.ts'

export {
  type Answer,
  type AskedMessage,
  type Backbone,
  type BackboneEvents,
  type Confirmations,
  type Credentials,
  type Decision,
  type Delta,
  type FailedAnswer,
  FetcherUnavailable,
  type HandedOver,
  type Held,
  type KeptAnswer,
  type Next,
  type Plan,
  REFUSED_BY_BACKEND,
  type Ruling,
  type Taken,
} from './backbone.ts'
export { fnv1a } from './fnv1a.ts'
export { readNodes } from './gateway/discovery.ts'
export { GHOST_MS } from './gateway/rooms/presence.ts'
export type { PushedState } from './gateway/rooms/pushed.ts'
export {
  createRoomsBackbone,
  type History,
  publishTo,
  type RoomsBackbone,
  type RoomsEvents,
} from './gateway/rooms/rooms-backbone.ts'
export type { MessageEvents } from './gateway/rooms/streams.ts'
export { REMEMBERED_MS as REFRESHES_REMEMBERED_MS } from './gateway/values/recent-refreshes.ts'
export { createHub } from './hub/hub.ts'
export type { NodeEvents } from './hub/node.ts'
export { type Changed, decodeChanged, encodeChanged } from './wire/changed.ts'
export { changesKey } from './wire/changes-key.ts'
export {
  type Join,
  type Leaving,
  type Member,
  type MembersAnswer,
  membersKey,
  type PresenceAnswer,
  readPresenceKey,
} from './wire/members-codec.ts'
export { decodeKept, encodeKept, type PushedAnswers, pushedKey, readPushedKey } from './wire/pushed-codec.ts'
export {
  type Answer as RoomAnswer,
  type Delete as DeleteCommand,
  type Deleted,
  type GapReason,
  gapFrom,
  HISTORY_BYTES_MAX,
  type Message,
  type Publish as PublishCommand,
  type Published,
  type RoomErrorCode,
  type Rooms,
  readHistoryKey,
  roomErrorCodes,
  roomsCodec,
} from './wire/rooms-codec.ts'
export { tokenDigest } from './wire/token-digest.ts'
export type { PutCommand, Values } from './wire/values-codec.ts'
export { ANONYMOUS_VIEWER, readViewerKey, userName, userOfViewer, viewerKey, viewerOfUser } from './wire/viewer-key.ts'
export {
  createZeromqBackbone,
  createZeromqHub,
  createZeromqRooms,
  createZeromqRoomsHub,
  hostsBeyondLoopback,
} from './zeromq/backbone-zeromq.ts'
export { createCurveKeyPair, curveKeyProblems, curvePairOf } from './zeromq/curve.ts'
export { hubCurveOf, hubKeyProblems, hubKeySettings } from './zeromq/hub-keys.ts'
export { createWriter, receive } from './zeromq/socket.ts'

export type RoomsHub = HubOf<Rooms>
export type ValuesHub = HubOf<Values>
