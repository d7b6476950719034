import { describeMoved, mayWrite } from './may-write.ts';
import { findCurrentSchema } from './schema-state.ts';
import type { Sql } from './sql.ts';

export type SchemaWatchOptions = {
  /** Asked periodically; while it is away nothing is known. */
  sql: Sql;
  /** Where this program's connections look for tables. */
  schema: string;
  version: string;
  /** Called once: from then on this program can store nothing. Each line is for people. */
  onMoved: (lines: string[]) => void;
  intervalMs?: number;
};

export type SchemaWatch = {
  /** Checks at once: a table was not where it should be. */
  look(): void;
  stop(): void;
};

/** Detects that a later version, beside which this one may not write, has moved the tables. */
export function watchSchema(options: SchemaWatchOptions): SchemaWatch {
  const { sql, schema, version, onMoved, intervalMs = 5_000 } = options;
  let isLooking = false;
  let isOver = false;
  const timer = setInterval(look, intervalMs).unref();

  function look(): void {
    if (isLooking || isOver) return;
    isLooking = true;
    findCurrentSchema(sql)
      .then((current) => {
        if (isOver || current === null || current.name === schema) return;
        if (mayWrite(version, current)) return;
        stop();
        onMoved(describeMoved(current, version));
      })
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }

  function stop(): void {
    isOver = true;
    clearInterval(timer);
  }

  return { look, stop };
}
