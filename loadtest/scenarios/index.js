// The list of scenarios, in the order of --help.
import { capacity } from './capacity.js'
import { chat } from './chat.js'
import { coldburst } from './coldburst.js'
import { connect } from './connect.js'
import { connections } from './connections.js'
import { fanout } from './fanout.js'
import { garbage } from './garbage.js'
import { keys } from './keys.js'
import { pingpong } from './pingpong.js'
import { polling } from './polling.js'
import { presence } from './presence.js'
import { publish } from './publish.js'
import { resume } from './resume.js'
import { ticker } from './ticker.js'

/** @type {import('./scenario.js').Scenario[]} */
export const scenarios = [
  capacity,
  polling,
  coldburst,
  keys,
  ticker,
  fanout,
  pingpong,
  connections,
  connect,
  garbage,
  chat,
  publish,
  resume,
  presence,
]
