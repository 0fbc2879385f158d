// The list of seeds, in the order of the report.
import { capacityStudy } from './capacity-study.js'
import { heimdallr } from './heimdallr.js'
import { marketTicker } from './market-ticker.js'
import { socketCluster } from './socketcluster.js'
import { webChats } from './web-chats.js'

/** @type {import('./seed.js').Seed[]} */
export const seeds = [heimdallr, webChats, capacityStudy, marketTicker, socketCluster]
