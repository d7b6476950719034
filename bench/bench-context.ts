import type { BenchDatabase } from './database.ts';
import type { BenchOptions } from './options.ts';
import type { Comparison, Metrics } from './rounds.ts';

/** What every row is given. */
export type BenchContext = {
  options: BenchOptions;
  database: BenchDatabase;
  /** null where the machine has no Redis: sessions are then in the database. */
  redisUrl: string | null;
  tell: (line: string) => void;
  /** Releases what a row acquired; last in, first out, after the row. */
  defer: (release: () => Promise<unknown>) => void;
};

export type RowResult = {
  row: string;
  work: string;
  rounds: Map<string, Metrics[]>;
  comparisons: Comparison[];
  /** What could not be measured here, and why. */
  notes: string[];
};

export type Row = { name: string; run: (context: BenchContext) => Promise<RowResult> };
