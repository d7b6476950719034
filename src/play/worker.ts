import { parentPort, workerData } from 'node:worker_threads';
import { type DatabaseOptions, openDatabase } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { messageOf } from '../lib/thrown.ts';
import { type Backtest, runBacktest } from './backtest.ts';
import { storedHistory } from './history.ts';
import { keepBacktest, type KeptEnd, type KeptWork } from './keep.ts';

/*
 * The thread of one backtest, so that devices' messages do not wait for it. One that is streamed works only while it is
 * asked for the next block of lines, so a reader that stops stops it. One that is kept works to its end.
 */

/** What a thread is started with. */
export type BacktestWork = {
  database: Pick<
    DatabaseOptions,
    'connectionString' | 'schema' | 'applicationName' | 'connectTimeoutMs' | 'statementTimeoutMs'
  >;
} & ({ backtest: Backtest; nowTs: number } | { kept: KeptWork });

/** A block of whole lines; without text after the last one. `values`: measurements that were read so far. */
export type BacktestBlock = { text: string; isLast: boolean; values: number } | { failed: string };

/** How a run of a backtest that is kept ended. */
export type KeptResult = { ended: KeptEnd } | { failed: string; isUnavailable: boolean };

/** About as much text as one block has, in characters. */
const blockLength = 65_536;

const port = parentPort;
if (!port) throw new Error('This file runs in a thread of its own: see threads.ts.');

const work = workerData as BacktestWork;
const db = openDatabase({ ...work.database, maxConnections: 1, onIdleError: () => undefined });

if ('kept' in work) {
  const result: KeptResult = await keepBacktest(db, work.kept).then(
    (ended) => ({ ended }),
    (error: unknown) => ({
      failed: messageOf(error),
      isUnavailable: kindOf(error) === 'unavailable',
    }),
  );
  port.postMessage(result);
  await db.close();
} else {
  const read = { values: 0 };
  const lines = runBacktest(storedHistory(db), work.backtest, work.nowTs, read);

  const readBlock = async (): Promise<BacktestBlock> => {
    let text = '';
    try {
      while (text.length < blockLength) {
        const { done, value } = await lines.next();
        if (done === true) return { text, isLast: true, values: read.values };
        // A piece of work is done: what there is may be sent.
        if (value === null) break;
        text += `${JSON.stringify(value)}\n`;
      }
      return { text, isLast: false, values: read.values };
    } catch (error) {
      return { failed: messageOf(error) };
    }
  };
  port.on('message', () => void readBlock().then((block) => port.postMessage(block)));
}
