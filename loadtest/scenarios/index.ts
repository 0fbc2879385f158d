// The list of scenarios, in the order of --help.
import { capacity } from './capacity.ts'
import { coldburst } from './coldburst.ts'
import { connect } from './connect.ts'
import { connections } from './connections.ts'
import { crash } from './crash.ts'
import { edge } from './edge.ts'
import { fanout } from './fanout.ts'
import { garbage } from './garbage.ts'
import { handover } from './handover.ts'
import { http } from './http.ts'
import { keys } from './keys.ts'
import { pingpong } from './pingpong.ts'
import { polling } from './polling/polling.ts'
import { chat } from './rooms/chat.ts'
import { presence } from './rooms/presence.ts'
import { publish } from './rooms/publish.ts'
import { resume } from './rooms/resume.ts'
import type { Scenario } from './scenario.ts'
import { stranger } from './stranger.ts'
import { ticker } from './ticker.ts'

export const scenarios: Scenario[] = [
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
  handover,
  edge,
  garbage,
  stranger,
  chat,
  publish,
  resume,
  presence,
]
