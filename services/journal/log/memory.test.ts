import { createMemoryLog } from './memory.ts'
import { testLog } from './suite.fixture.ts'

testLog({ open: async options => createMemoryLog(options) })
