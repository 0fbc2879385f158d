// Inflates what clients send compressed (permessage-deflate, RFC 7692). All private knowledge of how ws 8.23.0 inflates
// is here; inflate.test.ts pins that version.
//
// Why not as ws does it: each connection that ever sent a compressed message keeps an inflate stream, and a message
// makes its way through zlib's threads and back: 90 µs of CPU for a request of 100 bytes, 5 to 15 µs in place. Requests
// are small, and bounded with what they inflate to; each is independent of those before it, as no context is taken
// over.
//
// This relies on, and any release of ws may change:
// - `_extensions['permessage-deflate']` is what the receiver calls `decompress(data, fin, callback)` of, for each frame
//   of a compressed message, not again before the callback, and `callback(error, data)` is not to come at once;
// - nothing else is asked of that object but `cleanup()`, when the connection is closed; its class is ws's own
//   extension, which takes `isServer` and `maxPayload`, and `params` as negotiated.
import { constants, inflateRawSync } from 'node:zlib'
import type { PerMessageDeflateOptions, WebSocket } from 'ws'

type Inflated = (error: Error | null, data?: Buffer) => void

interface Extension {
  params: object
  decompress: (data: Buffer, fin: boolean, callback: Inflated) => void
  cleanup: () => void
}

type WsExtension = new (options: { isServer: boolean; maxPayload: number }) => Extension

const NAME = 'permessage-deflate'

/** The end that senders leave out (RFC 7692 section 7.2.2). */
const SYNC_TAIL = Buffer.from([0, 0, 0xff, 0xff])

const NOTHING = Buffer.alloc(0)

/**
 * The parameters that ws negotiates. All sessions are sent the same compressed bytes, so nothing in them may depend on
 * the connection.
 */
export const deflateOptions = {
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  // Declined where a client asks for it; ws's types have no word for that.
  serverMaxWindowBits: false,
} as unknown as PerMessageDeflateOptions

/**
 * An offer that can be taken: a window of the server's smaller than the one values are compressed with cannot.
 */
const TAKEABLE =
  /^\s*permessage-deflate(\s*;\s*(client_no_context_takeover|server_no_context_takeover|client_max_window_bits(\s*=\s*("?)(8|9|1[0-5])\4)?))*\s*$/i

/**
 * The first of the extensions offered that can be taken. The others are declined by being left out (RFC 7692 section
 * 5.1); ws answers 400 to a client that offers only such, as Python's websockets does.
 *
 * @param offers the header `Sec-WebSocket-Extensions`
 */
export function takeableOffer(offers: string | undefined) {
  return offers?.split(',').find(offer => TAKEABLE.test(offer))
}

/** Whether compression was negotiated. */
export function isCompressed(ws: WebSocket) {
  return ws.extensions === NAME
}

/**
 * Makes connections inflate in place what they receive.
 *
 * @param bytesMax of a message
 * @returns to be called with each, before anything is read from it
 */
export function createInflate(bytesMax: number): (ws: WebSocket) => void {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: bytesMax }

  /** Stands in the place of ws's extension object, of which each connection would hold 500 bytes more. */
  class Inflate {
    /** Of a message whose last frame is still to come. */
    fragments: Buffer[] | undefined = undefined

    decompress(data: Buffer, fin: boolean, callback: Inflated) {
      if (!fin) {
        this.fragments ??= []
        this.fragments.push(data)
        process.nextTick(callback, null, NOTHING)
        return
      }
      const message = this.fragments ? Buffer.concat([...this.fragments, data]) : data
      this.fragments = undefined
      let inflated
      try {
        inflated = inflateRawSync(Buffer.concat([message, SYNC_TAIL]), options)
      } catch {
        // ws finds for itself what is wrong with it, and closes the connection with the code for that.
        askWs(message, callback)
        return
      }
      process.nextTick(callback, null, inflated)
    }

    cleanup() {}
  }

  /** ws's own, known from the first connection there was. */
  let OfWs: WsExtension

  function askWs(message: Buffer, callback: Inflated) {
    const its = new OfWs({ isServer: true, maxPayload: bytesMax })
    its.params = { client_no_context_takeover: true }
    its.decompress(message, true, (error, inflated) => {
      its.cleanup()
      callback(error, inflated)
    })
  }

  return ws => {
    const { _extensions } = ws as unknown as { _extensions: Record<string, object> }
    const extension = _extensions[NAME]
    if (!extension) return
    OfWs = extension.constructor as WsExtension
    _extensions[NAME] = new Inflate()
  }
}
