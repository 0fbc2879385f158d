// The list of seeds, in the order of the report.
import { capacityStudy } from './capacity-study.ts'
import { heimdallr } from './heimdallr.ts'
import { marketTicker } from './market-ticker.ts'
import type { Seed } from './seed.ts'
import { socketCluster } from './socketcluster.ts'
import { webChats } from './web-chats.ts'

export const seeds: Seed[] = [heimdallr, webChats, capacityStudy, marketTicker, socketCluster]
