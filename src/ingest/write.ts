import type { AlarmDecider, OpenedAlarms } from '../alarms/decide.ts';
import { saveCommandAnswers } from '../commands/answers.ts';
import type { Configuration } from '../contract/configuration.ts';
import type { NewEvent } from '../contract/event.ts';
import { awaitingAnswer, neededStates } from '../contract/profile.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { Item, Rejection, SentMeasurement } from '../contract/uplink.ts';
import type { Transaction } from '../db/database.ts';
import { ingestLock } from '../db/locks.ts';
import { plainArray, plainArrays, type Sql, textList } from '../db/sql.ts';
import { replaceConfigurations } from '../devices/queries.ts';
import { keepRejections } from '../devices/rejections.ts';
import type { StoredLog, StoredRuntime } from '../engine/runtime-codec.ts';
import { keepMeanings, type KnownMeanings } from '../events/meanings.ts';
import { recordEvents } from '../events/store.ts';
import { addMeasurements, type KnownSeries, storeMeasurements } from '../measurements/store.ts';
import { keepDisplays, saveProfileAnswers } from '../profiles/downlinks.ts';
import { keepInputs, keepLateHours } from './keep-inputs.ts';
import type { Plan } from './plan.ts';
import { type DeviceBatch, newFragment } from './queue.ts';
import type { DueRow } from './rules/apply.ts';
import type {
  AnsweredCommands,
  ApplyLimits,
  Changes,
  DeviceState,
  Fragment,
  MeasurementRow,
} from './rules/model.ts';
import { saveClocks, saveRuntimes, saveStates, type StoredClocks } from './save-states.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** What a transaction is written with, besides its plan. */
export type WriteDeps = {
  /** The ids of series that are in the database. */
  knownSeries: KnownSeries;
  /** Which meanings of events are in the database. */
  meanings: KnownMeanings;
  /** Decides who is notified of what happened, and notes it on the events, which are recorded afterwards. */
  alarms: Pick<AlarmDecider, 'decide'>;
  limits: Pick<ApplyLimits, 'rejectionBytesPerDevice'>;
};

const noneOpened: OpenedAlarms = new Map();

/** What a transaction has added and counts once it is committed. */
export type Written = {
  recorded: NewEvent[];
  meanings: ReturnType<KnownMeanings['unwritten']>;
  opened: OpenedAlarms;
  /** The measurements that are new; null: all are, or nobody asks. */
  added: ReadonlySet<MeasurementRow> | null;
};

/** A device changed since it was read, so the plan is invalid and is computed again. */
export class StaleDeviceState extends Error {
  /** The devices that a notice reported as changed in the meantime, or with a command that changed. */
  readonly forgotten = new Set<number>();
}

/**
 * Writes a plan within one transaction, and returns what is new. `areNew`: no measurement in it is expected to be
 * stored already; one that is causes a unique violation. Throws `StaleDeviceState`, `MillisecondFull`. The statements
 * do not wait for each other's answers, and the server runs them in this order. If alarms have to be decided, that
 * happens between the devices' rows and all others, and other transactions with signals of these devices wait for it.
 */
export async function write(
  tx: Transaction,
  plan: Plan,
  areNew: boolean,
  deps: WriteDeps,
): Promise<Written> {
  const { rows } = plan;
  const added = !areNew && rows.outcomes.size > 0 ? new Set<MeasurementRow>() : null;
  const meanings = deps.meanings.unwritten(rows.events);
  const write = async () => {
    const kept = meanings.length > 0 ? keepMeanings(tx, meanings) : null;
    const [recorded] = await Promise.all([writeRows(tx, rows, areNew, added, deps), kept]);
    return recorded;
  };
  if (rows.signals.length === 0) {
    const [areFresh, recorded] = await Promise.all([writeDevices(tx, plan), write()]);
    if (!areFresh) throw new StaleDeviceState();
    return { recorded, meanings, opened: noneOpened, added };
  }
  if (!(await writeDevices(tx, plan))) throw new StaleDeviceState();
  const opened = await deps.alarms.decide(tx, rows.signals);
  return { recorded: await write(), meanings, opened, added };
}

/** Writes or locks the devices' rows. Returns whether all are as they were read. */
async function writeDevices(tx: Transaction, plan: Plan): Promise<boolean> {
  const { moved, evaluated, held, unchanged, due } = plan;
  const [, removed, movedNow, evaluatedNow, heldNow, unchangedNow] = await Promise.all([
    lockIngest(tx),
    listRemovedAccounts(tx, accountIdsOf(plan)),
    moved.length > 0 ? saveStates(tx, moved) : 0,
    evaluated.length > 0 ? saveRuntimes(tx, evaluated) : 0,
    held.length > 0 ? holdUnchanged(tx, held) : 0,
    unchanged.length > 0 ? countUnchanged(tx, unchanged) : 0,
    // After the devices' rows: transactions that change both in this order cannot deadlock.
    due.length > 0 && saveDue(tx, due),
  ]);
  if (removed.length > 0) forgetDevicesOf(plan, new Set(removed));
  return (
    removed.length === 0 &&
    movedNow === moved.length &&
    evaluatedNow === evaluated.length &&
    heldNow === held.length &&
    unchangedNow === unchanged.length
  );
}

/** The accounts of devices that something is written for. */
const accountIdsOf = ({ moved, evaluated, held, unchanged }: Plan): number[] => [
  ...new Set([moved, evaluated, held, unchanged].flat().map(({ device }) => device.accountId)),
];

/** Forgets the state of their devices, so that the next attempt reads them and finds them gone. */
function forgetDevicesOf({ deviceBatches }: Plan, accountIds: ReadonlySet<number>): void {
  for (const { queue } of deviceBatches)
    if (accountIds.has(queue.accountId)) queue.deviceState = null;
}

/** Returns the new events. */
async function writeRows(
  tx: Transaction,
  rows: Changes,
  areNew: boolean,
  added: Set<MeasurementRow> | null,
  { knownSeries, limits }: WriteDeps,
): Promise<NewEvent[]> {
  const maxBytes = limits.rejectionBytesPerDevice;
  const [recorded] = await Promise.all([
    rows.events.length > 0 ? recordEvents(tx, rows.events) : [],
    areNew
      ? addMeasurements(tx, rows.measurements, knownSeries)
      : storeOrThrow(tx, rows.measurements, added, knownSeries),
    rows.configurations.length > 0 && replaceConfigurations(tx, rows.configurations),
    rows.profiles.length > 0 && saveProfileAnswers(tx, rows.profiles),
    rows.rejections.length > 0 && keepRejections(tx, rows.rejections, { maxBytes }),
    rows.clocks.size > 0 && saveClocks(tx, rows.clocks.values()),
    rows.displays.size > 0 && keepDisplays(tx, rows.displays.values()),
    rows.commands.size > 0 && saveAnsweredCommands(tx, rows.commands),
    rows.inputs.length > 0 && keepInputs(tx, rows.inputs),
    rows.lateHours.size > 0 && keepLateHours(tx, rows.lateHours.values()),
  ]);
  return recorded;
}

/** Throws `StaleDeviceState` if one of them changed since it was read. */
async function saveAnsweredCommands(tx: Transaction, commands: AnsweredCommands): Promise<void> {
  const changed = [...commands.values()].filter(({ before, after }) => after !== before);
  if (changed.length === 0 || (await saveCommandAnswers(tx, changed))) return;
  const stale = new StaleDeviceState();
  // The others in the batch are valid, and need not be read again.
  for (const { deviceId } of changed) stale.forgotten.add(deviceId);
  throw stale;
}

/** Only after a redelivery: some of these may be stored already. Throws `MillisecondFull`. */
async function storeOrThrow(
  tx: Transaction,
  rows: MeasurementRow[],
  added: Set<MeasurementRow> | null,
  knownSeries: KnownSeries,
): Promise<void> {
  const onAdded = added ? (row: MeasurementRow) => void added.add(row) : undefined;
  const full = await storeMeasurements(tx, rows, knownSeries, onAdded);
  if (full.length > 0) throw new MillisecondFull(full);
}

export type DeviceRow = {
  device_id: number;
  uuid: string;
  account_id: number;
  configuration: Configuration;
  version: number;
  pu_id: number;
  st_id: number;
  state_at: number;
  arrived_at: number | null;
  reported_at: number | null;
  reported_pu_id: number | null;
  reported_st_id: number | null;
  answers_profiles: boolean;
  due_at: number | null;
  runtime: StoredRuntime | null;
  /** The evidence added since, in order. Entries with another base do not count. */
  evidence_log: StoredLog[] | null;
  current_profile: string | null;
  current_content: number | null;
  engine: 'service' | 'device' | null;
  pending_profile: string | null;
  pending_content: number | null;
  pending_since: number | null;
  clocks: StoredClocks | null;
  /** What `noteGiven` depends on, and what of it was noted last. */
  basis: string;
  noted: string | null;
};

/** How much there is to read of a device's row and its profiles. */
export type DeviceSize = {
  device_id: number;
  account_id: number;
  bytes: number;
  contents: { id: number; bytes: number }[];
};

/** In the given order. A removed device has no row. */
export async function listSizes(db: Sql, deviceIds: number[]): Promise<DeviceSize[]> {
  const { rows } = await db.query<DeviceSize>({
    name: 'ingest-sizes',
    text: `
      select s.device_id, d.account_id,
             octet_length(d.configuration::text)
               + coalesce(octet_length(s.runtime::text), 0)
               + (select coalesce(sum(octet_length(measurements)), 0)
                    from evidence_log l where l.device_id = s.device_id)::integer as bytes,
             array(
               select json_build_object('id', c.id, 'bytes', c.bytes)
                 from device_profile dp
                 join profile p on p.id = dp.profile_id
                 join profile_content c on c.id = p.content_id
                where dp.device_id = s.device_id
                  and dp.state in ${textList(neededStates)}) as contents
        from unnest($1::bigint[]) with ordinality as wanted (device_id, place)
        join device_state s on s.device_id = wanted.device_id
        join device d on d.id = s.device_id
        join account a on a.id = d.account_id and a.removed_at is null
       order by wanted.place`,
    values: [deviceIds],
  });
  return rows;
}

/**
 * Claims the devices that have a profile for this transaction: no other transaction has their messages under way, and
 * whatever others computed from an earlier read is invalid.
 */
export async function claimStates(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query({
    name: 'ingest-claim',
    // In order, so that two transactions that claim the same devices do not deadlock.
    text: `
      update device_state s
         set version = version + 1
        from (
          select device_id
            from device_state
           where device_id = any($1::bigint[])
             and exists (
               select from device_profile p
                where p.device_id = device_state.device_id
                  and p.state in ${textList(neededStates)})
           order by device_id
             for no key update) as claimed
       where s.device_id = claimed.device_id`,
    values: [deviceIds],
  });
}

/** Everything that evaluation depends on. A removed device has no row. */
export async function listDeviceStates(db: Sql, deviceIds: number[]): Promise<DeviceRow[]> {
  const { rows } = await db.query<DeviceRow>({
    name: 'ingest-devices',
    text: `
      select s.device_id, d.uuid, d.account_id, d.configuration, s.version,
             s.pu_id, s.st_id, s.state_at, s.arrived_at, s.reported_at, s.reported_pu_id, s.reported_st_id,
             s.answers_profiles, due.due_at, s.runtime, (select json_agg(l order by l.version)
                                                from evidence_log l
                                               where l.device_id = s.device_id) as evidence_log,
             c.profile_id as current_profile, cp.content_id as current_content, c.engine,
             p.profile_id as pending_profile, pp.content_id as pending_content,
             pp.created_at as pending_since, s.noted,
             -- A pending profile that becomes current changes nothing here: that is noted when it does.
             concat_ws(' ', coalesce(p.profile_id, c.profile_id), s.answers_profiles,
                       md5(d.configuration::text)) as basis,
             (select json_object_agg(k.s_id, k.state)
                from sense_clock k where k.device_id = s.device_id) as clocks
        from unnest($1::bigint[]) as wanted (device_id)
        join device_state s on s.device_id = wanted.device_id
        join device d on d.id = s.device_id
        join account a on a.id = d.account_id and a.removed_at is null
        left join device_due due on due.device_id = s.device_id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile cp on cp.id = c.profile_id
        left join device_profile p on p.device_id = d.id and p.state in ${textList(awaitingAnswer)}
        left join profile pp on pp.id = p.profile_id`,
    values: [deviceIds],
  });
  return rows;
}

/** The content of profiles. */
type ContentRow = { id: number; account_id: number; bytes: number; purposes: Purpose[] };

export async function listContents(db: Sql, contentIds: number[]): Promise<ContentRow[]> {
  const { rows } = await db.query<ContentRow>({
    name: 'ingest-contents',
    text: `
      select id, account_id, bytes, purposes
        from profile_content
       where id = any($1::bigint[])`,
    values: [contentIds],
  });
  return rows;
}

/** Keeps devices from being removed until the transaction ends; see `ingestLock`. */
async function lockIngest(tx: Sql): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock_shared(${ingestLock})`);
}

/** Those of these accounts that are removed, as seen after `lockIngest`; usually none. */
async function listRemovedAccounts(tx: Sql, accountIds: number[]): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>({
    name: 'ingest-removed-accounts',
    text: 'select id from account where removed_at is not null and id = any($1::bigint[])',
    values: [plainArray(accountIds)],
  });
  return rows.map(({ id }) => id);
}

/** How many of these devices still have the version that the transaction was computed from. */
async function countUnchanged(tx: Sql, deviceStates: DeviceState[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'ingest-unchanged',
    text: `
      select count(*)
        from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
        join device_state s on s.device_id = read.device_id and s.version = read.version`,
    values: plainArrays(
      deviceStates.map((c) => c.device.deviceId),
      deviceStates.map((c) => c.version),
    ),
  });
  return rows[0]?.count ?? 0;
}

/** The same, and nobody changes or claims these devices before the transaction ends. */
async function holdUnchanged(tx: Sql, deviceStates: DeviceState[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'ingest-hold',
    text: `
      select count(*)
        from (
          select
            from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
            join device_state s on s.device_id = read.device_id and s.version = read.version
             for share of s) as held`,
    values: plainArrays(
      deviceStates.map((c) => c.device.deviceId),
      deviceStates.map((c) => c.version),
    ),
  });
  return rows[0]?.count ?? 0;
}

/** Writes when devices are due next. The transaction has changed or locked their rows. */
async function saveDue(tx: Sql, rows: readonly DueRow[]): Promise<void> {
  const { gone = [], due = [] } = Object.groupBy(rows, ({ dueTs }) =>
    dueTs === null ? 'gone' : 'due',
  );
  await Promise.all([gone.length > 0 && removeDue(tx, gone), due.length > 0 && putDue(tx, due)]);
}

async function removeDue(tx: Sql, rows: DueRow[]): Promise<void> {
  await tx.query({
    name: 'ingest-not-due',
    text: 'delete from device_due where device_id = any($1::bigint[])',
    values: [plainArray(rows.map(({ deviceId }) => deviceId))],
  });
}

async function putDue(tx: Sql, rows: DueRow[]): Promise<void> {
  await tx.query({
    name: 'ingest-due',
    text: `
      insert into device_due (device_id, account_id, due_at)
      select device_id, account_id, ms_to_timestamp(due_ts)
        from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as n (device_id, account_id, due_ts)
      on conflict (device_id) do update
         set due_at = excluded.due_at, retry_at = null, failures = 0`,
    values: plainArrays(
      rows.map(({ deviceId }) => deviceId),
      rows.map(({ accountId }) => accountId),
      rows.map(({ dueTs }) => dueTs),
    ),
  });
}

/**
 * Like `claimStates`, for devices with only ticks: claims those that are still due and in no other transaction, and
 * returns them. The other transaction evaluates the rest, or leaves them to the next look.
 */
export async function claimDueStates(
  tx: Sql,
  deviceIds: number[],
  nowTs: WallMs,
): Promise<number[]> {
  const { rows } = await tx.query<{ device_id: number }>({
    name: 'ingest-claim-due',
    text: `
      update device_state s
         set version = version + 1
        from (
          select st.device_id
            from device_due due
            join device_state st on st.device_id = due.device_id
           where due.device_id = any($1::bigint[])
             and due.due_at <= ms_to_timestamp($2)
           order by st.device_id
             for no key update of st skip locked) as claimed
       where s.device_id = claimed.device_id
      returning s.device_id`,
    values: [plainArray(deviceIds), nowTs],
  });
  return rows.map(({ device_id }) => device_id);
}

/** A millisecond has no room for these rows: their sense has the maximum number of other values in it. */
export class MillisecondFull extends Error {
  readonly rows: MeasurementRow[];

  constructor(rows: MeasurementRow[]) {
    super(`${rows.length} measurements exceeded the maximum for one millisecond`);
    this.rows = rows;
  }
}

/** The same batch with those measurements turned into rejections. */
export function rejectBeyondMillisecond(
  batch: DeviceBatch[],
  rows: MeasurementRow[],
): DeviceBatch[] {
  const full = new Set(rows.map((row) => nameOf(row.deviceId, row)));
  return batch.map(({ queue, fragments }) => {
    const isFull = ({ value }: Item<SentMeasurement>) => {
      const { sId, ts, val } = value;
      const place = typeof val === 'number' ? { val } : { val: val.lat, long: val.long };
      return full.has(nameOf(queue.device.deviceId, { sId, ts, ...place }));
    };
    return { queue, fragments: fragments.map((fragment) => rejectSome(fragment, isFull)) };
  });
}

function rejectSome(
  fragment: Fragment,
  isWrong: (item: Item<SentMeasurement>) => boolean,
): Fragment {
  const { message, content, rejections } = fragment;
  if (content.kind !== 'measurements' || !content.items.some(isWrong)) return fragment;
  return newFragment(
    message,
    { ...content, items: content.items.filter((item) => !isWrong(item)) },
    [...rejections, ...content.items.filter(isWrong).map(toRejection)],
  );
}

function toRejection({ index, value: { sId, ts } }: Item<SentMeasurement>): Rejection {
  return {
    reason: 'unstorable',
    message: `Sense ${sId} already has 1,000 other values at ts ${ts}, the maximum for one millisecond.`,
    path: index === null ? '' : `/${index}`,
  };
}

type Named = { sId: string; ts?: number | undefined; val: number; long?: number | undefined };
const nameOf = (deviceId: number, { sId, ts, val, long }: Named) =>
  [deviceId, sId, ts, val, long].join(' ');
