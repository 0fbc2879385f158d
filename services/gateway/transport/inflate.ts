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

/**
 * @typedef {(error: Error | null, data?: Buffer) => void} Inflated
 * @typedef {{ params: object, decompress: (data: Buffer, fin: boolean, callback: Inflated) => void, cleanup: () => void
 *   }} Extension
 * @typedef {new (options: { isServer: boolean, maxPayload: number }) => Extension} WsExtension
 */

const NAME = 'permessage-deflate'

/** The end that senders leave out (RFC 7692 section 7.2.2). */
const SYNC_TAIL = Buffer.from([0, 0, 0xff, 0xff])

const NOTHING = Buffer.alloc(0)

/**
 * The parameters that ws negotiates. All sessions are sent the same compressed bytes, so nothing in them may depend on
 * the connection.
 */
export const deflateOptions = /** @type {import('ws').PerMessageDeflateOptions} */ ({
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  // Declined where a client asks for it; ws's types have no word for that.
  serverMaxWindowBits: /** @type {any} */ (false),
})

/**
 * An offer that can be taken: a window of the server's smaller than the one values are compressed with cannot.
 */
const TAKEABLE =
  /^\s*permessage-deflate(\s*;\s*(client_no_context_takeover|server_no_context_takeover|client_max_window_bits(\s*=\s*("?)(8|9|1[0-5])\4)?))*\s*$/i

/**
 * The first of the extensions offered that can be taken. The others are declined by being left out (RFC 7692 section
 * 5.1); ws answers 400 to a client that offers only such, as Python's websockets does.
 *
 * @param {string | undefined} offers the header `Sec-WebSocket-Extensions`
 */
export function takeableOffer(offers) {
  return offers?.split(',').find(offer => TAKEABLE.test(offer))
}

/** Whether compression was negotiated. @param {import('ws').WebSocket} ws */
export function isCompressed(ws) {
  return ws.extensions === NAME
}

/**
 * Makes connections inflate in place what they receive.
 *
 * @param {number} bytesMax of a message
 * @returns {(ws: import('ws').WebSocket) => void} to be called with each, before anything is read from it
 */
export function createInflate(bytesMax) {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: bytesMax }

  /** Stands in the place of ws's extension object, of which each connection would hold 500 bytes more. */
  class Inflate {
    /** Of a message whose last frame is still to come. @type {Buffer[] | undefined} */
    fragments = undefined

    /** @param {Buffer} data @param {boolean} fin @param {Inflated} callback */
    decompress(data, fin, callback) {
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

  /** ws's own, known from the first connection there was. @type {WsExtension} */
  let OfWs

  /** @param {Buffer} message @param {Inflated} callback */
  function askWs(message, callback) {
    const its = new OfWs({ isServer: true, maxPayload: bytesMax })
    its.params = { client_no_context_takeover: true }
    its.decompress(message, true, (error, inflated) => {
      its.cleanup()
      callback(error, inflated)
    })
  }

  return ws => {
    const { _extensions } = /** @type {{ _extensions: Record<string, object> }} */ (/** @type {unknown} */ (ws))
    const extension = _extensions[NAME]
    if (!extension) return
    OfWs = /** @type {WsExtension} */ (extension.constructor)
    _extensions[NAME] = new Inflate()
  }
}
