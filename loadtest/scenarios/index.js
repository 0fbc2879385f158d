// The list of scenarios, in the order of --help.
import { capacity } from './capacity.js'
import { coldburst } from './coldburst.js'
import { connect } from './connect.js'
import { connections } from './connections.js'
import { crash } from './crash.js'
import { fanout } from './fanout.js'
import { garbage } from './garbage.js'
import { http } from './http.js'
import { keys } from './keys.js'
import { pingpong } from './pingpong.js'
import { polling } from './polling/polling.js'
import { chat } from './rooms/chat.js'
import { presence } from './rooms/presence.js'
import { publish } from './rooms/publish.js'
import { resume } from './rooms/resume.js'
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
  crash,
  http,
  garbage,
  chat,
  publish,
  resume,
  presence,
]
