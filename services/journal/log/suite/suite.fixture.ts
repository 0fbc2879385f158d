// The tests of a log's promise (log.ts): each log's own test file runs them.
import { testDeletion } from './deletion.fixture.ts'
import { testHistory } from './history.fixture.ts'
import { testIds } from './ids.fixture.ts'
import { testMessages } from './messages.fixture.ts'
import { testOutbox } from './outbox.fixture.ts'
import { testRandom } from './random.fixture.ts'
import { createSuite, type Deps } from './setup.fixture.ts'
import { testShares } from './shares.fixture.ts'
import { testValues } from './values.fixture.ts'

export function testLog(deps: Deps) {
  const suite = createSuite(deps)
  testMessages(suite)
  testIds(suite)
  testHistory(suite)
  testShares(suite)
  testDeletion(suite)
  testValues(suite)
  testOutbox(suite)
  testRandom(deps)
}
