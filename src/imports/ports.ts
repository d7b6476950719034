import type { Sense } from '../contract/configuration.ts';
import type { Rejection } from '../contract/rejection.ts';
import type { Sql } from '../db/sql.ts';
import type { Transaction } from '../db/transaction.ts';

/** A measurement of a device of the account, and the line that says it. */
export type ImportRow = {
  line: number;
  uuid: string;
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long: number | undefined;
};

/** What other features do for an import. */
export type ImportPorts = {
  /** What is wrong with a row, by the rules for what devices send; null: nothing. */
  check(
    row: ImportRow,
    senses: ReadonlyMap<string, Sense>,
    arrivedTs: number,
  ): Pick<Rejection, 'reason' | 'message'> | null;
  /** Throws a unique violation where a sense has a value in one of these milliseconds already. */
  add(tx: Transaction, rows: ImportRow[]): Promise<void>;
  /** Stores what is not there yet. `crowded`: those for which there is no room. */
  store(tx: Transaction, rows: ImportRow[]): Promise<{ added: number; crowded: ImportRow[] }>;
  /** Keeps ingest from storing something of these devices until the transaction ends. */
  hold(tx: Sql, deviceIds: number[]): Promise<void>;
  /** Voids what processes know of the newest measurements of the rows' devices. */
  note(tx: Sql, rows: ImportRow[], arrivedTs: number): Promise<void>;
  /** Counts what was added for the account's quota `storedBytes`. */
  count(tx: Sql, accountId: number, rows: ImportRow[], added: number): Promise<void>;
  /** Throws where that quota is used up. */
  checkRoom(accountId: number): Promise<void>;
  /** Rejects once a token opens nothing any more. */
  authenticate(token: string): Promise<unknown>;
  /** Whether messages of devices of other accounts wait to be stored. */
  othersWait(accountId: number): boolean;
};
