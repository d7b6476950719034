import { expect, test } from 'vitest';
import { countFiles } from '../../bench/count.ts';

/**
 * Exports that only tests import. Everything else is tested through what its module offers to others. Each of these has
 * a reason: it is pure and dense, so that its own test is the clear one; or a test compares all of it with the database
 * or the documents; or the tests build their servers of it.
 */
const forTests: Record<string, string> = {
  'connector/mqtt/listeners.ts createFrameLimit': 'a leaky bucket, by a clock of the test',
  'connector/mqtt/listeners.ts measureProxyHeader': 'a parser, of bytes cut anywhere',
  'src/assembly/resources.ts shareFiles': 'a rule, for limits that no process of a test has',
  'src/cli/engine/vectors.ts compareAnswer': 'a comparison, of thousands of answers',
  'src/cli/simulate/devices.ts readingsAt': 'a curve, of thousands of points',
  'src/clock/after-leap.ts timeColumns': 'compared with the columns of the database',
  'src/contract/command.ts happen': 'the table of transitions, in any order of happenings',
  'src/contract/warnings.ts warningCodes': 'compared with docs/warnings.md',
  'src/db/backup/backup.ts copyRunning': 'the standbys of tests are made with it',
  'src/db/embedded/cluster.ts findOwner': 'the servers of tests run as this user',
  'src/db/embedded/programs.ts checkLinks': 'looks at a package; that of the tests is complete',
  'src/db/migrate.ts leastWriterAfter': 'the databases of tests find their tables by it',
  'src/devices/list.ts writeDeviceList': 'processor time of a piece, for 10,000 devices',
  'src/devices/register.ts createRegistration':
    'a queue; its route refuses what the database would',
  'src/engine/runtime-codec.ts decodeMeasurements': 'the other half of an encoder',
  'src/history/clear-removed.ts ownedRows': 'compared with the foreign keys of the database',
  'src/history/retention.ts settle': 'a table of transitions, and a property of them',
  'src/log/events.ts logNames': 'compared with docs/log.md and all of the source',
  'src/ingest/ingest.ts createBatcher': 'which messages share a transaction, without a database',
  'src/ingest/queue.ts createAccountQueue': 'a fair queue, of thousands of elements',
  'src/ingest/retry.ts noteRedelivery': 'a window of time, by a clock of the test',
  'src/log/log.ts hidePrivate': 'patterns, for lines longer than the log lets through',
  'src/play/history.ts playRecorded': 'compared with what was recorded, of random histories',
  'src/play/backtest.ts compare': 'a pairing, of times that no device has',
  'src/notifications/channels/email.ts makeContactToken': 'the other half of a reader',
  'src/notifications/channels/webhook.ts hookDriver': 'a signature, of secrets that the test has',
  'src/notifications/enqueue.ts enqueueNotifications':
    'what is written of messages that no alarm asks for',
};

test('what nobody outside a file uses is not exported', () => {
  const parts = countFiles();
  expect(parts.flatMap(({ forNobody }) => forNobody)).toEqual([]);
  expect(parts.flatMap((part) => part.forTests).toSorted()).toEqual(
    Object.keys(forTests).toSorted(),
  );
});
