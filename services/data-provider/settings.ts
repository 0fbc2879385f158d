// The settings of the simulated backend. Beside `${NAME}` in keycast.yaml nothing else reads the environment.
import { type Config, common, setting } from '@keycast/service'
import { DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MIN } from './documents.ts'

export const settings = {
  ...common,
  host: setting.host({ env: 'PROVIDER_HOST', default: '127.0.0.1', doc: 'Address to listen on.' }),
  port: setting.port({
    env: 'PROVIDER_PORT',
    default: 3000,
    doc: 'Port to listen on: content, counters, metrics and health.',
  }),
  documentBytes: setting.bytes({
    env: 'PROVIDER_DOCUMENT_BYTES',
    default: 130_000,
    min: DOCUMENT_BYTES_MIN,
    max: DOCUMENT_BYTES_MAX,
    doc: 'Exact length of a conversation, text or binary.',
  }),
  changeMs: setting.milliseconds({
    env: 'PROVIDER_CHANGE_MS',
    default: 5_000,
    doc: 'How often each document changes; 0: never.',
  }),
  latencyMs: setting.milliseconds({ env: 'PROVIDER_LATENCY_MS', default: 0, doc: 'Shortest time an answer takes.' }),
  jitterMs: setting.milliseconds({
    env: 'PROVIDER_JITTER_MS',
    default: 0,
    doc: 'Longest time added to that at random, evenly spread.',
  }),
  errorRate: setting.ratio({ env: 'PROVIDER_ERROR_RATE', default: 0, doc: 'Share of requests answered with 500.' }),
  hangRate: setting.ratio({ env: 'PROVIDER_HANG_RATE', default: 0, doc: 'Share of requests never answered.' }),
  garbageRate: setting.ratio({
    env: 'PROVIDER_GARBAGE_RATE',
    default: 0,
    doc: 'Share of requests answered with JSON that does not parse.',
  }),
}

/** Viewers must not be shown what is made up. */
export const conflictsOf = ({ profile }: Pick<Config<typeof settings>, 'profile'>): string[] =>
  profile === 'try'
    ? []
    : [
        'KEYCAST_PROFILE=production: this backend only makes content up. Name yours in keycast.yaml; to try Keycast with this one, set KEYCAST_PROFILE=try',
      ]
