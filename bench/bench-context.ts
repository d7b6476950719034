import type { BenchDatabase } from './database.ts';
import type { BenchOptions } from './options.ts';
import type { Comparison, Metrics } from './rounds.ts';

/** What every row of the table can use. */
export type BenchContext = {
  options: BenchOptions;
  database: BenchDatabase;
  /** null if the machine has no Redis: sessions are then in the database. */
  redisUrl: string | null;
  tell: (line: string) => void;
  /** Calls these after the row, in reverse order. */
  defer: (release: () => Promise<unknown>) => void;
};

export type RowResult = {
  row: string;
  work: string;
  rounds: Map<string, Metrics[]>;
  comparisons: Comparison[];
  /** What was not measured on this machine, and why. */
  notes: string[];
};

export type Row = { name: string; run: (context: BenchContext) => Promise<RowResult> };
