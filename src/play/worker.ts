import { parentPort, workerData } from 'node:worker_threads';
import { type DatabaseOptions, openDatabase } from '../db/database.ts';
import { messageOf } from '../lib/thrown.ts';
import { type Backtest, runBacktest } from './backtest.ts';

/*
 * The thread of one backtest, so that devices' messages do not wait for it. It works only while it is asked for the
 * next block of lines, so a reader that stops stops it.
 */

/** What a thread is started with. */
export type BacktestWork = {
  backtest: Backtest;
  database: Pick<
    DatabaseOptions,
    'connectionString' | 'schema' | 'applicationName' | 'connectTimeoutMs' | 'statementTimeoutMs'
  >;
  nowTs: number;
};

/** A block of whole lines; without text after the last one. */
export type BacktestBlock = { text: string; isLast: boolean } | { failed: string };

/** About as much text as one block has, in characters. */
const blockLength = 65_536;

const port = parentPort;
if (!port) throw new Error('This file runs in a thread of its own: see routes.ts.');

const { backtest, database, nowTs } = workerData as BacktestWork;
const db = openDatabase({ ...database, maxConnections: 1, onIdleError: () => undefined });
const lines = runBacktest(db, backtest, nowTs);

async function readBlock(): Promise<BacktestBlock> {
  let text = '';
  try {
    while (text.length < blockLength) {
      const { done, value } = await lines.next();
      if (done === true) return { text, isLast: true };
      // A piece of work is done: what there is may be sent.
      if (value === null) break;
      text += `${JSON.stringify(value)}\n`;
    }
    return { text, isLast: false };
  } catch (error) {
    return { failed: messageOf(error) };
  }
}

port.on('message', () => void readBlock().then((block) => port.postMessage(block)));
