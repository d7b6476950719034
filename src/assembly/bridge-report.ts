import { hostname } from 'node:os';
import type { BridgeView } from '../../connector/bridge/status.ts';
import { removeBridgeStatus, saveBridgeStatus } from '../broker-hooks/bridge-status.ts';
import type { Sql } from '../db/sql.ts';

export type BridgeReportOptions = {
  db: Sql;
  connectorId: number;
  connectorName: string;
  /** One run of this process. */
  runUuid: string;
  read: () => BridgeView;
  /** Said once until it works again. */
  onError: (error: unknown) => void;
  /** Well below what a row that is not refreshed counts as gone after. */
  refreshMs?: number;
};

export type BridgeReport = {
  /** Something changed that others are to know at once. */
  changed(): void;
  /** Resolves when what is known has been written, or could not be. */
  written(): Promise<void>;
  close(): Promise<void>;
};

/** Tells the other processes, by the database, how a bridge of this one stands. */
export function startBridgeReport(options: BridgeReportOptions): BridgeReport {
  const { db, connectorId, connectorName, runUuid, read, onError, refreshMs = 5_000 } = options;
  let writing = Promise.resolve();
  let isDue = false;
  let isFailing = false;

  async function write(): Promise<void> {
    isDue = false;
    const { refused, ...view } = read();
    const count = [...refused.values()].reduce((sum, each) => sum + each, 0);
    const where = `${hostname()}:${process.pid}`;
    const row = { ...view, connectorId, connectorName, runUuid, process: where, refused: count };
    try {
      await saveBridgeStatus(db, row);
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    }
  }

  /** One write at a time, and one more where something changed meanwhile. */
  function changed(): void {
    if (isDue) return;
    isDue = true;
    writing = writing.then(write);
  }

  const timer = setInterval(changed, refreshMs);
  timer.unref();
  changed();
  return {
    changed,
    written: () => writing,
    async close() {
      clearInterval(timer);
      await writing;
      await removeBridgeStatus(db, { connectorId, runUuid }).catch(onError);
    },
  };
}
