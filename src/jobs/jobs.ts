import { type Actor, detailsOfDevices, insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { type DatabaseErrorKind, kindOf } from '../db/errors.ts';
import { jobsLock, withinLockTime } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Keep } from '../http/answer.ts';
import { pause, WakeableRest } from '../lib/wait.ts';
import { type LimitsOf, lockUsage, quotaExceeded } from '../quotas/quotas.ts';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';
import type { FailedAlarm, JobFailure, JobState, KeptDevice, StartedJob } from './schema.ts';

/**
 * The result for some devices or alarms. `kept`: devices that keep what they had. `after`: what to do after the commit.
 */
export type PieceDone = {
  failed: Failure[];
  kept?: KeptDevice[];
  after?: () => Promise<void> | void;
};

/** A device or an alarm for which the action failed. */
type Failure = JobFailure | FailedAlarm;

/** Does the job's action for some of its devices or alarms, within the transaction. */
export type DoPiece = (tx: Sql, piece: JobPiece) => Promise<PieceDone>;

type RunnerDeps = {
  db: Database;
  doPiece: DoPiece;
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  onError: (error: unknown) => void;
  /** How often it looks for jobs that another process started or left. */
  pollMs?: number;
};

type JobRunner = {
  /** There is something to do. */
  wake(): void;
  close(): Promise<void>;
};

/** Devices or alarms per transaction. */
const mostAtOnce = 20;
/** After this many failures of a single one in a row, the job continues without it. */
const maxFailures = 3;

/** How many to try at once. `failures`: how often in a row a single one failed. `reason`: why. */
type Trial = { limit: number; failures: number; reason: string };
const firstTrial: Trial = { limit: mostAtOnce, failures: 0, reason: '' };

/** Halves the number, to find the one that fails, or how many do not take too long. */
function afterFailure({ limit, failures }: Trial, kind: DatabaseErrorKind): Trial {
  const reason = kind === 'cancelled' ? 'took-too-long' : 'internal-error';
  if (limit === 1) return { limit, failures: failures + 1, reason };
  return { limit: Math.floor(limit / 2), failures: 0, reason };
}
/** It pauses for as long as a piece took, but no longer than this, so that others get to the database. */
const longestRestMs = 250;

/**
 * Runs the jobs of all accounts, some devices of each in turn, in one process at a time. The transaction that does a
 * piece also stores the job's progress. So each device is done once, and if the process is killed, another continues.
 */
export function startJobRunner(deps: RunnerDeps): JobRunner {
  const { db, doPiece, monotonicClock, onError, pollMs = 1_000 } = deps;
  const stopping = new AbortController();
  /** How to try jobs that failed before. */
  const trials = new Map<number, Trial>();
  const rest = new WakeableRest();

  /** False if there is nothing to do. */
  async function doSome(): Promise<boolean> {
    const next = await findNext(db);
    if (!next) return false;
    const trial = trials.get(next.id) ?? firstTrial;
    const { limit, failures, reason } = trial;
    let isItsTurn = false;
    const work: DoPiece = async (tx, piece) => {
      isItsTurn = true;
      return failures < maxFailures ? doPiece(tx, piece) : { failed: failAll(piece, reason) };
    };
    try {
      const done = await doIn(next, limit, work);
      if (limit * 2 >= mostAtOnce) trials.delete(next.id);
      else trials.set(next.id, { ...firstTrial, limit: limit * 2 });
      if (done === 'others') return false;
      await done?.after?.();
    } catch (error) {
      // The account was removed. Its jobs rest until they are deleted.
      if (error instanceof DomainError && error.code === 'unauthenticated') return true;
      const kind = kindOf(error);
      // Whatever failed, other jobs go first.
      const putOff = putOffJob(db, next.id);
      if (kind === 'unavailable') {
        await putOff.catch(() => undefined);
        throw error;
      }
      await putOff;
      // Somebody else works on the account: no device has failed.
      if (!isItsTurn && kind === 'cancelled') return true;
      trials.set(next.id, afterFailure(trial, kind));
      onError(error);
    }
    return true;
  }

  function doIn(
    { id, accountId }: { id: number; accountId: number },
    limit: number,
    work: DoPiece,
  ): Promise<PieceDone | 'others' | null> {
    return db.transaction(async (tx) => {
      if (!(await isAlone(tx))) return 'others';
      // Before the job's row, because deleting the account takes the locks in the same order.
      await withinLockTime(tx, lockWaitMs, () => lockUsage(tx, accountId));
      const piece = await lockPiece(tx, id, limit);
      if (!piece) return null;
      const done = await work(tx, piece);
      const count = piece.uuids.length + piece.alarmIds.length;
      await saveProgress(tx, id, { count, failed: done.failed, kept: done.kept });
      return done;
    });
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      rest.begin();
      const startedMs = monotonicClock();
      const isBusy = await doSome().catch((error: unknown) => {
        onError(error);
        return false;
      });
      if (isBusy)
        await pause(Math.min(longestRestMs, monotonicClock() - startedMs), stopping.signal);
      else await rest.rest(pollMs);
    }
  }

  const running = run();
  return {
    wake: () => rest.wake(),
    async close() {
      stopping.abort();
      rest.wake();
      await running;
    },
  };
}

/** Jobs of other accounts wait while one waits for its account. */
const lockWaitMs = 100;

/** One process at a time, so that jobs take no more of the database if there are more processes. */
async function isAlone(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ held: boolean }>(
    'select pg_try_advisory_xact_lock($1) as held',
    [jobsLock],
  );
  return rows[0]?.held === true;
}

const failAll = ({ uuids, alarmIds }: JobPiece, reason: string): Failure[] => [
  ...uuids.map((deviceAuthUuid) => ({ deviceAuthUuid, reason })),
  ...alarmIds.map((alarmId) => ({ alarmId, reason })),
];

/**
 * Versions up to 0.4.0 know neither alarms nor the newer actions on devices. They take up what is `running`, and leave
 * alone what is `acting`. What is `playing`, a backtest, is not done here.
 */
const isRunning = `state in ('running', 'acting')`;
const isUnderWay = `state in ('running', 'acting', 'playing')`;
const stateNow = `case when ${isUnderWay} then 'running' else state end`;

/** How long a job's list of devices or alarms is kept after its end, so that the job can be undone. */
const devicesKeptMs = 3_600_000;

/** The action that takes another one back. */
const undoOf: Readonly<Record<string, string>> = {
  label: 'unlabel',
  unlabel: 'label',
  mute: 'unmute',
  limits: 'restore',
  profile: 'restore',
  'label-limits': 'restore',
  restore: 'restore',
  snooze: 'unsnooze',
  close: 'reopen',
};

/** Failures of a job that are kept one by one, and devices that keep what they had. */
const maxListed = 1_000;

/** The job that has waited longest. Jobs of disabled accounts rest. */
async function findNext(sql: Sql): Promise<{ id: number; accountId: number } | null> {
  const { rows } = await sql.query<{ id: number; accountId: number }>(
    `select j.id, j.account_id as "accountId"
       from job j
       join account a on a.id = j.account_id
      where j.${isRunning} and a.disabled_at is null
      order by j.served_at, j.id
      limit 1`,
  );
  return rows[0] ?? null;
}

/** The next piece of a job. */
export type JobPiece = {
  id: number;
  jobId: string;
  accountId: number;
  action: JobAction;
  labels: string[] | null;
  actor: Actor;
  /** Of devices; or else `alarmIds`. */
  uuids: string[];
  alarmIds: number[];
};

/**
 * Locks a job and returns the next `limit` devices or alarms; null if it has ended or its account has been disabled
 * meanwhile.
 */
async function lockPiece(tx: Sql, id: number, limit: number): Promise<JobPiece | null> {
  const { rows } = await tx.query<JobPiece>(
    `select id, uuid as "jobId", account_id as "accountId", action, labels, actor,
            devices[done + 1 : done + $2]::text[] as uuids,
            coalesce(alarms[done + 1 : done + $2]::float8[], '{}') as "alarmIds"
       from job
      where id = $1 and ${isRunning}
        and exists (select from account where id = job.account_id and disabled_at is null)
        for no key update`,
    [id, limit],
  );
  return rows[0] ?? null;
}

/** Adds `count` to the job's progress. If these were the last ones, the job is done. */
export async function saveProgress(
  tx: Sql,
  id: number,
  {
    count,
    failed,
    kept = [],
  }: { count: number; failed: readonly Failure[]; kept?: readonly KeptDevice[] | undefined },
): Promise<void> {
  await tx.query(
    `update job j
        set done = j.done + $2,
            failed = ${appended('failed', '$3')},
            failed_more = failed_more + ${countBeyond('failed', '$3')},
            kept = ${appended('kept', '$4')},
            kept_more = kept_more + ${countBeyond('kept', '$4')},
            served_at = clock_timestamp(),
            state = case when j.done + $2 >= total then 'done' else state end,
            ended_at = case when j.done + $2 >= total then clock_timestamp() end,
            devices = case when j.done + $2 >= total and j.action->>'action' = 'remove' then '{}'
                           else devices end
      where id = $1`,
    [id, count, JSON.stringify(failed), JSON.stringify(kept)],
  );
}

/** As SQL: this list of a job with another one behind it, as far as there is room. */
const appended = (list: string, more: string) => `
  case when ${more}::text = '[]' or json_array_length(j.${list}) >= ${maxListed} then j.${list} else (
    select coalesce(json_agg(f), '[]')
      from (select f from json_array_elements(j.${list}) f
            union all
            select f from json_array_elements(${more}::json) f
            limit ${maxListed}) listed) end`;

/** As SQL: how many of another list there is no room for behind this one. */
const countBeyond = (list: string, more: string) => `
  greatest(0, json_array_length(j.${list}) + json_array_length(${more}::json) - ${maxListed})
    - greatest(0, json_array_length(j.${list}) - ${maxListed})`;

/** Lets other jobs go first. */
async function putOffJob(sql: Sql, id: number): Promise<void> {
  await sql.query(`update job set served_at = clock_timestamp() where id = $1`, [id]);
}

/** What to do with each device or alarm. The function that does it defines the other members. */
type JobAction = {
  action: string;
  labels?: string[];
  untilTs?: number;
  pId?: string;
  pIds?: string[];
  purposes?: string[];
  /** The job whose devices or alarms these are. */
  undoes?: string;
} & Record<string, unknown>;

/** Whose jobs. `keyId`: only those of this API key; null: all of the account. */
export type JobOwner = { accountId: number; keyId: string | null };

type NewJob = {
  accountId: number;
  keyId: string | null;
  action: JobAction;
  /** Only devices with one of these labels; null: any device. */
  labels: readonly string[] | null;
  actor: Actor;
  /** In ms. */
  ts: number;
};

/** What a job acts on: devices, by their uuids, or alarms, each with its device's. */
type JobTargets = { devices: string[] } | { alarms: { alarmId: number; uuid: string }[] };

/** Stores a job and returns its identifier. One without devices and alarms is done at once. */
async function insertJob(tx: Sql, job: NewJob, targets: JobTargets): Promise<string> {
  const { accountId, keyId, action, labels, actor, ts } = job;
  const [devices, alarms] =
    'devices' in targets
      ? [targets.devices, null]
      : [[], targets.alarms.map(({ alarmId }) => alarmId)];
  const { rows } = await tx.query<{ uuid: string }>(
    `insert into job (account_id, key_id, action, labels, actor, devices, alarms, total, created_at,
                      state, ended_at)
     select $1, $2, $3, $4, $5, t.devices, t.alarms, t.total, ms_to_timestamp($8),
            case when t.total = 0 then 'done' when t.alarms is null and $9 then 'running' else 'acting' end,
            case when t.total = 0 then ms_to_timestamp($8) end
       from (select d.devices, a.alarms,
                    coalesce(cardinality(a.alarms), cardinality(d.devices)) as total
               from (select string_to_array($6, ',')::uuid[] as devices) d,
                    (select string_to_array($7, ',')::bigint[] as alarms) a) t
     returning uuid`,
    [
      accountId,
      keyId,
      JSON.stringify(action),
      labels,
      JSON.stringify(actor),
      devices.join(),
      alarms?.join() ?? null,
      ts,
      !('change' in action),
    ],
  );
  const [row] = rows;
  if (!row) throw new Error('A job was not stored.');
  return row.uuid;
}

/** Stores a job that plays a backtest on so many devices, and returns its identifier. */
export async function insertPlaying(tx: Sql, job: NewJob, count: number): Promise<string> {
  const { accountId, keyId, action, labels, actor, ts } = job;
  const { rows } = await tx.query<{ uuid: string }>(
    `insert into job (account_id, key_id, action, labels, actor, devices, total, created_at, state)
     values ($1, $2, $3, $4, $5, '{}', $6, ms_to_timestamp($7), 'playing')
     returning uuid`,
    [accountId, keyId, JSON.stringify(action), labels, JSON.stringify(actor), count, ts],
  );
  const [row] = rows;
  if (!row) throw new Error('A job was not stored.');
  return row.uuid;
}

/** A job that is stopped with more devices left than this keeps its place in the quota for a while. */
const freeDevices = 100;
/** For this many ms per device that was left: at least as long as doing something with it would take. */
const restMsOfDevice = 1;

/**
 * An account's running jobs, its stopped jobs that still keep their place (their lists of devices were written, after
 * all), and in how many ms the first of these gives it up.
 */
async function countPlaces(
  sql: Sql,
  accountId: number,
  nowTs: WallMs,
): Promise<{ running: number; resting: number; restMs: number }> {
  const { rows } = await sql.query<{ running: number; resting: number; restMs: number }>(
    `select count(*) filter (where ${isRunning}) as running,
            count(*) filter (where rest_ms > 0) as resting,
            coalesce(min(rest_ms) filter (where rest_ms > 0), 0)::float8 as "restMs"
       from (select state,
                    case when state = 'stopped' and total - done > ${freeDevices}
                         then extract(epoch from ended_at) * 1000 - $2::float8
                              + (total - done) * ${restMsOfDevice}
                         else 0 end as rest_ms
               from job
              where account_id = $1 and state <> 'done' and action->>'action' <> 'backtest') j`,
    [accountId, nowTs],
  );
  return rows[0] ?? { running: 0, resting: 0, restMs: 0 };
}

export type FoundJob = FoundEntry & {
  failed: Failure[];
  failedMore: number;
  keptDevices: KeptDevice[];
};

type FoundEntry = {
  jobId: string;
  action: JobAction;
  state: JobState;
  done: number;
  of: number;
  failures: number;
  kept: number;
  startedTs: number;
  endedTs: number | null;
  by: Actor['by'];
  keyName: string | null;
  /** What it acted on is still known, or what it did besides. */
  isKnown: boolean;
  /** It changed what labels bring about, besides its devices. */
  hasBesides: boolean;
  undoneBy: string | null;
};

/** What is said of an action. The whole one may be long. */
const saidAction = `json_build_object('action', action->'action', 'labels', action->'labels',
  'untilTs', action->'untilTs', 'pId', action->'change'->'pId',
  'pIds', (select json_agg(i -> 'pId') from json_array_elements(action #> '{change,installs}') i), 'purposes', action->'purposes',
  'undoes', action->'undoes')`;
const columns = `uuid as "jobId", ${saidAction} as action, ${stateNow} as state, done, total as of, created_at as "startedTs",
  ended_at as "endedTs", json_array_length(failed) + failed_more as failures, json_array_length(kept) + kept_more as kept,
  actor->>'by' as by, (select k.name from api_key k where k.uuid = job.key_id) as "keyName",
  (cardinality(devices) > 0 or coalesce(cardinality(alarms), 0) > 0
    or (total = 0 and action #> '{change,limits}' is not null)) as "isKnown",
  action #> '{change,limits}' is not null as "hasBesides"`;
const isOwn = 'account_id = $1 and ($2::uuid is null or key_id = $2)';

/** Newest first, without the devices that failed. */
export async function listJobs(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  limit: number,
): Promise<FoundEntry[]> {
  const { rows } = await sql.query<Omit<FoundEntry, 'undoneBy'>>(
    `select ${columns}
       from job
      where ${isOwn}
      order by id desc
      limit $3`,
    [accountId, keyId, limit],
  );
  const later = Map.groupBy(rows, ({ action }) => action.undoes ?? '');
  return rows.map((job) => ({ ...job, undoneBy: findUndoing(job, later.get(job.jobId)) }));
}

type Undoing = Omit<FoundEntry, 'undoneBy'>;

/** Whether it has changed anything. */
const hasChanged = ({ of, done, failures, kept, hasBesides }: Undoing) =>
  of === 0 || hasBesides || done > failures + kept;

/** Which of the jobs with the same devices or alarms takes this one back; null: none. */
function findUndoing({ action }: Pick<Undoing, 'action'>, later: readonly Undoing[] = []) {
  const undo = undoOf[action.action];
  const undoing = later.find(
    (each) =>
      each.state !== 'stopped' &&
      (each.state === 'running' || hasChanged(each)) &&
      each.action.action === undo &&
      String(each.action.labels) === String(action.labels),
  );
  return undoing?.jobId ?? null;
}

/**
 * What takes a job back, and until when (ms); null: nothing does or does any more, there is nothing to take back, or it
 * was done. `reopenMs`: how long after a job that closed alarms they can be opened again.
 */
export function findUndo(
  job: FoundEntry,
  { reopenMs, nowTs }: { reopenMs: number; nowTs: WallMs },
): { action: string; untilTs: number } | null {
  const { state, endedTs, isKnown, undoneBy } = job;
  const action = undoOf[job.action.action];
  if (action === undefined || state === 'running' || endedTs === null) return null;
  if (!isKnown || !hasChanged(job) || undoneBy !== null) return null;
  const untilTs = endedTs + (action === 'reopen' ? reopenMs : devicesKeptMs);
  return untilTs > nowTs ? { action, untilTs } : null;
}

/**
 * A list of devices or alarms with the names that people know: of devices as they are now. Not for a key that is
 * confined to labels: a device may be outside of them.
 */
const named = (list: string) => `(
  select coalesce(json_agg(
           f::jsonb || jsonb_strip_nulls(jsonb_build_object('deviceName', d.name, 'eventName', a.event_name))
           order by n), '[]')
    from json_array_elements(job.${list}) with ordinality as each (f, n)
    left join device d on $2::uuid is null and d.account_id = job.account_id and d.uuid = (f->>'deviceAuthUuid')::uuid
    left join alarm a on $2::uuid is null and a.account_id = job.account_id and a.id = (f->>'alarmId')::bigint)`;

/** Null if there is none. */
export async function findJob(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<FoundJob | null> {
  const { rows } = await sql.query<Omit<FoundJob, 'undoneBy'>>(
    `select ${columns}, ${named('failed')} as failed, failed_more as "failedMore", ${named('kept')} as "keptDevices"
       from job
      where ${isOwn} and uuid = $3`,
    [accountId, keyId, jobId],
  );
  const [job] = rows;
  if (!job) return null;
  const { rows: later } = await sql.query<Undoing>(
    `select ${columns}
       from job
      where ${isOwn} and action->>'undoes' = $3
      order by id desc`,
    [accountId, keyId, jobId],
  );
  return { ...job, undoneBy: findUndoing(job, later) };
}

/**
 * The devices that a job processed, for undoing it; null if there is no such job, it is still running, or its devices
 * have been forgotten. A job may have none: what it did besides can be undone for as long.
 */
export async function listJobDevices(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<string[] | null> {
  const { rows } = await sql.query<{ uuids: string[] }>(
    `select devices::text[] as uuids
       from job
      where ${isOwn} and uuid = $3 and not ${isUnderWay}
        and (cardinality(devices) > 0
             or (total = 0 and ended_at > clock_timestamp() - interval '${devicesKeptMs} milliseconds'))`,
    [accountId, keyId, jobId],
  );
  return rows[0]?.uuids ?? null;
}

/** A job on alarms that has ended `agoMs` ago. */
type JobAlarms = { action: string; alarmIds: number[]; agoMs: number };

/** The same for the alarms of a job, without those for which it is known to have failed. */
export async function findJobAlarms(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<JobAlarms | null> {
  const { rows } = await sql.query<JobAlarms>(
    `select action->>'action' as action,
            extract(epoch from clock_timestamp() - ended_at)::float8 * 1000 as "agoMs",
            array(select a.id from unnest(alarms) with ordinality as a (id, place)
                   where a.id not in (select coalesce((f->>'alarmId')::bigint, 0)
                                        from json_array_elements(failed) f)
                   order by a.place)::float8[] as "alarmIds"
       from job
      where ${isOwn} and uuid = $3 and not ${isUnderWay} and cardinality(alarms) > 0`,
    [accountId, keyId, jobId],
  );
  return rows[0] ?? null;
}

/** The action of a job that has ended; null if there is none. */
export async function findJobAction(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<JobAction | null> {
  const { rows } = await sql.query<{ action: JobAction }>(
    `select action from job where ${isOwn} and uuid = $3 and not ${isUnderWay}`,
    [accountId, keyId, jobId],
  );
  return rows[0]?.action ?? null;
}

/** False if there is no such job. A job that has ended, and what it acted on, is not written again. */
export async function stopJob(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
  ts: number,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `with stopped as (
       update job
          set state = 'stopped', ended_at = ms_to_timestamp($4), devices = devices[1 : done],
              alarms = alarms[1 : done]
        where ${isOwn} and uuid = $3 and ${isUnderWay})
     select from job where ${isOwn} and uuid = $3`,
    [accountId, keyId, jobId, ts],
  );
  return rowCount === 1;
}

type Forget = {
  accountId: number | null;
  keep: number;
  sinceTs: number;
  devicesSinceTs: number;
};

/**
 * Deletes jobs that ended before `sinceTs` (ms), and an account's ended jobs beyond its newest `keep`. Empties the
 * lists of devices of jobs that ended before `devicesSinceTs`. `accountId` null: for all accounts, by time only.
 */
export async function forgetJobs(
  sql: Sql,
  { accountId, keep, sinceTs, devicesSinceTs }: Forget,
): Promise<void> {
  // A backtest is kept as long as it says itself.
  const isForgotten = `not ${isUnderWay} and action->>'action' <> 'backtest'`;
  await sql.query(
    `update job set devices = '{}', alarms = alarms[1 : 0]
      where not ${isUnderWay} and ended_at < ms_to_timestamp($2) and (devices <> '{}' or alarms <> '{}')
        and ($1::bigint is null or account_id = $1)`,
    [accountId, devicesSinceTs],
  );
  await sql.query(
    `delete from job
      where ${isForgotten}
        and (ended_at < ms_to_timestamp($3)
             or id in (select id from job
                        where account_id = $1 and ${isForgotten}
                        order by id desc
                       offset $2))
        and ($1::bigint is null or account_id = $1)`,
    [accountId, keep, sinceTs],
  );
}

/** How many ended jobs of an account are kept, and for how long at most. */
const keptJobs = 100;
const keptMs = 30 * 86_400_000;

/** The times, in ms, before which ended jobs and their devices are forgotten. */
export const keptSince = (nowTs: WallMs) => ({
  sinceTs: nowTs - keptMs,
  devicesSinceTs: nowTs - devicesKeptMs,
});

type StartJobDeps = {
  db: Database;
  limitsOf: LimitsOf;
  /** The time by which jobs may be forgotten, ms; null while the clock is in doubt. */
  believedTs: () => WallMs | null;
  /** There is a new job to do. */
  onStarted: () => void;
};

/** A job whose targets are not known yet: `select` finds them within the transaction, and `more` of its action. */
type JobToStart = NewJob & {
  select: (tx: Sql) => Promise<JobTargets & { more?: Partial<JobAction> }>;
  /** For the answer, ms. */
  now: Clock;
};

type StartJob = (job: JobToStart, keep: Keep<StartedJob> | null) => Promise<StartedJob>;

/** Stores a job within the quota `jobs`. Throws `quota-exceeded`; `too-many-requests` if large jobs were stopped. */
export function createStartJob({ db, limitsOf, believedTs, onStarted }: StartJobDeps): StartJob {
  return async ({ select, now, ...asked }, keep) => {
    const { accountId } = asked;
    const limit = limitsOf(accountId).jobs;
    const started = await db.transaction(async (tx) => {
      await lockUsage(tx, accountId);
      const { running, resting, restMs } = await countPlaces(tx, accountId, asked.ts);
      if (running >= limit) throw quotaExceeded({ quota: 'jobs', limit, used: running });
      if (running + resting >= limit) throw stoppedTooMuch(restMs);
      const { more = {}, ...targets } = await select(tx);
      const job = { ...asked, action: { ...asked.action, ...more } };
      await forgetJobs(tx, { accountId, keep: keptJobs - 1, ...keptSince(believedTs() ?? 0) });
      const jobId = await insertJob(tx, job, targets);
      await auditJob(tx, job, { jobId, targets });
      const started = { jobId, timestamp: now() };
      await keep?.(tx, started);
      return started;
    });
    onStarted();
    return started;
  };
}

async function auditJob(
  tx: Sql,
  { accountId, action, actor, ts }: NewJob,
  { jobId, targets }: { jobId: string; targets: JobTargets },
): Promise<void> {
  const uuids =
    'devices' in targets ? targets.devices : targets.alarms.flatMap(({ uuid }) => uuid || []);
  if (uuids.length === 0) return;
  const { action: name, labels, untilTs, note, force, change, purposes } = action;
  const { pId, installs } = (change ?? {}) as { pId?: string; installs?: { pId: string }[] };
  const details = {
    jobId,
    action: name,
    ...(labels ? { labels } : {}),
    ...(untilTs === undefined ? {} : { untilTs }),
    ...(typeof note === 'string' ? { note } : {}),
    ...(force === true ? { force: 'true' } : {}),
    ...(pId === undefined ? {} : { pId }),
    ...(installs === undefined ? {} : { pIds: installs.map((each) => each.pId) }),
    ...(purposes === undefined ? {} : { purposes }),
    ...('alarms' in targets ? { alarms: targets.alarms.length } : {}),
    ...detailsOfDevices([...new Set(uuids)]),
  };
  await insertEntry(tx, accountId, { kind: 'bulk-action', actor, ts, details });
}

function stoppedTooMuch(restMs: number): DomainError {
  return new DomainError('too-many-requests', 'Jobs were just stopped: wait a moment.', {
    retryAfterSeconds: Math.ceil(restMs / 1_000),
  });
}
