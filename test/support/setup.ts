// Checks after every end-to-end test: no viewer was sent an older value, and no viewer holds other bytes than its version
// names.
import { assertNobodyMisled, assertNobodyWentBack } from './client.ts'

afterEach(assertNobodyWentBack)
afterEach(assertNobodyMisled)
