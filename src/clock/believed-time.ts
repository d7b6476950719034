/*
 * The database's record of the time, read and written by the running service (service-clock.ts) and by the operator's
 * command (src/cli/clock.ts). belief.ts, which is pure, judges it.
 */
import type { Sql } from '../db/sql.ts';
import type { Judgement, SharedBelief } from './belief.ts';

/** The database's clock, and the row that all processes share. */
export type DatabaseTime = {
  ts: number;
  shared: SharedBelief | null;
  /** The clock was in doubt, and times that it wrote while it was ahead may remain (after-leap.ts). */
  isUnsettled: boolean;
};

const columns = `extract(epoch from service_now())::float8 * 1000 as ts,
            extract(epoch from b.reckoned_at)::float8 * 1000 as "reckonedTs",
            extract(epoch from b.doubted_at)::float8 * 1000 as "doubtedTs",
            b.is_unsettled as "isUnsettled"`;

/** Reads everything in one statement, so that the end of a doubt is seen together with the time that ended it. */
export async function readDatabaseTime(db: Sql): Promise<DatabaseTime> {
  const { rows } = await db.query<{
    ts: number;
    reckonedTs: number | null;
    doubtedTs: number | null;
    isUnsettled: boolean | null;
  }>(`select ${columns} from (select) as one left join believed_time b on true`);
  const { ts = Number.NaN, reckonedTs = null, doubtedTs = null, isUnsettled } = rows[0] ?? {};
  const shared = reckonedTs === null ? null : { reckonedTs, doubtedTs };
  return { ts, shared, isUnsettled: isUnsettled === true };
}

/**
 * Writes a judgement. A process that still believes the clock never ends another process's doubt, and one that doubts
 * it never moves the recorded time back.
 */
export async function writeBelief(
  db: Sql,
  { kind, shared: { reckonedTs, doubtedTs } }: NonNullable<Judgement['write']>,
): Promise<void> {
  const change = {
    doubt: `doubted_at = coalesce(b.doubted_at, excluded.doubted_at), is_unsettled = true`,
    believe: `reckoned_at = excluded.reckoned_at, doubted_at = null`,
    advance: `reckoned_at = greatest(b.reckoned_at, excluded.reckoned_at)
              where (b.doubted_at is null) = (excluded.doubted_at is null)`,
  }[kind];
  await db.query(
    `insert into believed_time as b (reckoned_at, doubted_at, is_unsettled)
     values (to_timestamp($1::float8 / 1000), to_timestamp($2::float8 / 1000), $2::float8 is not null)
     on conflict (only_row) do update set ${change}`,
    [reckonedTs, doubtedTs],
  );
}

/** Records that all times written ahead have been corrected, unless the clock is in doubt again. */
export async function noteSettled(db: Sql): Promise<void> {
  await db.query('update believed_time set is_unsettled = false where doubted_at is null');
}

/** The operator confirms the clock. Returns the row before, and the time that is believed from now on. */
export async function believeClock(
  db: Sql,
): Promise<{ before: SharedBelief | null; believedTs: number }> {
  const { ts, shared } = await readDatabaseTime(db);
  await writeBelief(db, { kind: 'believe', shared: { reckonedTs: ts, doubtedTs: null } });
  return { before: shared, believedTs: ts };
}
