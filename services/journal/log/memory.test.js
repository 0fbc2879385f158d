import { createMemoryLog } from './memory.js'
import { testLog } from './suite.fixture.js'

testLog({ open: async options => createMemoryLog(options) })
