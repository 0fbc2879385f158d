// What can be set about the simulated backend. No other file reads the environment.
import { common, setting } from '@keycast/service'
import { DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MIN } from './documents.js'

export const settings = {
  ...common,
  host: setting.text({ env: 'PROVIDER_HOST', default: '127.0.0.1', doc: 'Address to listen on.' }),
  port: setting.port({ env: 'PROVIDER_PORT', default: 3000, doc: 'Port of everything: content, counters, health.' }),
  documentBytes: setting.bytes({
    env: 'PROVIDER_DOCUMENT_BYTES',
    default: 130_000,
    min: DOCUMENT_BYTES_MIN,
    max: DOCUMENT_BYTES_MAX,
    doc: 'Length of a conversation, text or binary, to the byte.',
  }),
  changeMs: setting.milliseconds({
    env: 'PROVIDER_CHANGE_MS',
    default: 5_000,
    doc: 'A conversation gets a message this often; 0: never.',
  }),
  latencyMs: setting.milliseconds({ env: 'PROVIDER_LATENCY_MS', default: 0, doc: 'Least time an answer takes.' }),
  jitterMs: setting.milliseconds({
    env: 'PROVIDER_JITTER_MS',
    default: 0,
    doc: 'Most time that comes on top, evenly spread.',
  }),
  errorRate: setting.ratio({ env: 'PROVIDER_ERROR_RATE', default: 0, doc: 'Share of requests answered with 500.' }),
  hangRate: setting.ratio({ env: 'PROVIDER_HANG_RATE', default: 0, doc: 'Share of requests never answered.' }),
  garbageRate: setting.ratio({
    env: 'PROVIDER_GARBAGE_RATE',
    default: 0,
    doc: 'Share of requests answered with JSON that does not parse.',
  }),
}
