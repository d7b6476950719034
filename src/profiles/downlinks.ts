import type { Bus } from '../bus/bus.ts';
import type { Configuration } from '../contract/configuration.ts';
import { transitionOf } from '../contract/profile.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { DeviceIdentity, Downlink, DownTopic, DueTopic } from '../contract/uplink.ts';
import type { Database } from '../db/database.ts';
import {
  deleteInBatches,
  documentsOf,
  jsonSequence,
  plainArrays,
  type Sql,
  textList,
  unseenArray,
} from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { coalesce } from '../lib/coalesce.ts';
import { awaiting, transition } from './queries.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type Downlinks = {
  /** What to send a device that has subscribed to these topics. Rejects with `device-gone` or `unavailable`. */
  subscribed(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]>;
  /** What to send a connected device after a notice. */
  due(device: DeviceIdentity, topic: DueTopic): Promise<Downlink[]>;
  /** The device has acknowledged a message: a profile that was due becomes `sent`, and a display text is deleted. */
  delivered(device: DeviceIdentity, message: Downlink): Promise<void>;
  /** Makes the device's connections, on any process, send the profile that is due. */
  handOver(device: DeviceIdentity): Promise<void>;
};

/** Messages to devices are always read from the database: nothing is retained or queued anywhere else. */
export function createDownlinks({ db, bus }: { db: Sql; bus: Bus }): Downlinks {
  // Each row may contain a large profile.
  const rows = coalesce({
    load: (ids: number[]) => listDueDownlinks(db, ids),
    maxKeys: 100,
    parallel: 2,
  });
  const kept = coalesce({ load: (ids: number[]) => listKept(db, ids), parallel: 2 });
  const seen = coalesce({
    load: async (displays: SeenDisplays[]) => {
      await forgetSeen(db, displays);
      return new Map<SeenDisplays, true>();
    },
  });

  async function getDue(device: DeviceIdentity): Promise<DueDownlinkRow> {
    const row = await rows.find(device.deviceId);
    if (!row) throw new DomainError('device-gone', 'The device was removed.');
    return row;
  }

  /** Display texts come after the state that they may refer to. */
  async function subscribed(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]> {
    const [messages, texts] = await Promise.all([
      readDue(device, topics),
      topics.includes('display') ? kept.find(device.deviceId) : null,
    ]);
    return texts ? [...messages, ...texts] : messages;
  }

  async function readDue(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]> {
    const row = await getDue(device);
    if (topics.includes('profile') && !row.answers_profiles) {
      await rememberAnswering(db, [device.deviceId]);
      bus.publish('device', { deviceId: device.deviceId, uuid: device.uuid });
      // A message that arrived meanwhile may have made the pending profile current.
      return toDownlinks(await getDue(device), topics);
    }
    return toDownlinks(row, topics);
  }

  return {
    subscribed,
    due: async (device, topic) =>
      topic === 'display'
        ? ((await kept.find(device.deviceId)) ?? [])
        : toDownlinks(await getDue(device), [topic]),
    async delivered({ deviceId }, { topic, pId, keptId }) {
      if (topic === 'profile' && pId !== undefined) await markDelivered(db, deviceId, pId);
      if (keptId !== undefined) await seen.find({ deviceId, fromId: keptId, toId: keptId });
    },
    handOver: async ({ deviceId, uuid }) =>
      bus.publish('device', { deviceId, uuid, push: 'profile' }),
  };
}

/** The configuration comes first: a profile may name senses that only it describes. */
function toDownlinks(row: DueDownlinkRow, topics: DownTopic[]): Downlink[] {
  const wanted = new Set(topics);
  const messages: Downlink[] = [];
  if (wanted.has('configuration')) {
    const { device, module } = row.configuration;
    const payload = { device, module, ts: row.configured_at };
    messages.push({ topic: 'configuration', payload });
  }
  if (wanted.has('profile') && row.offered_id !== null) {
    const { offered_id: pId, offered_purposes: purposes, offered_at: ts } = row;
    messages.push({ topic: 'profile', payload: { pId, purposes, ts }, pId });
  }
  if (wanted.has('state')) {
    const payload = { puId: row.pu_id, stId: row.st_id, ts: row.state_at };
    messages.push({ topic: 'state', payload });
  }
  return messages;
}

const received = transition('received');

/** What may be due to a device. `offered`: the pending profile, or the current one if the device never received it. */
type DueDownlinkRow = {
  device_id: number;
  configuration: Configuration;
  configured_at: number;
  pu_id: number;
  st_id: number;
  state_at: number;
  answers_profiles: boolean;
  offered_id: string | null;
  offered_purposes: Purpose[] | null;
  offered_at: number | null;
};

/** By device; devices that are gone are missing. */
async function listDueDownlinks(
  db: Sql,
  deviceIds: number[],
): Promise<Map<number, DueDownlinkRow>> {
  const { rows } = await db.query<DueDownlinkRow>({
    name: 'profiles-due',
    text: `
      select s.device_id, d.configuration, d.configured_at, s.pu_id, s.st_id, s.state_at,
             s.answers_profiles, p.id as offered_id, pc.purposes as offered_purposes,
             p.created_at as offered_at
        from device_state s
        join device d on d.id = s.device_id
        left join device_profile w on w.device_id = s.device_id and w.state in ${awaiting}
        left join device_profile c on c.device_id = s.device_id and c.state = 'current'
                                  and c.delivered_at is null
        left join profile p on p.id = coalesce(w.profile_id, c.profile_id)
        left join profile_content pc on pc.id = p.content_id
       where s.device_id = any(${unseenArray('$1', 'bigint')})`,
    values: [deviceIds],
  });
  return new Map(rows.map((row) => [row.device_id, row]));
}

/** From now on the devices answer for themselves: a profile no longer becomes current without an answer. */
async function rememberAnswering(db: Sql, deviceIds: number[]): Promise<void> {
  await db.query(
    `
      update device_state
         set answers_profiles = true, version = version + 1
       where device_id = any($1::bigint[]) and not answers_profiles`,
    [deviceIds],
  );
}

/** The device has received the profile; if that was pending, this is its next state. */
async function markDelivered(db: Sql, deviceId: number, profileId: string): Promise<void> {
  await db.query({
    name: 'profiles-mark-delivered',
    text: `
      update device_profile
         set delivered_at = now(),
             state = case when state in ${received.from} then ${received.to} else state end,
             changed_at = case when state in ${received.from} then now() else changed_at end
       where device_id = $1 and profile_id = $2 and delivered_at is null`,
    values: [deviceId, profileId],
  });
}

/** The newest text for a device's display in a state. `ts`: of its event, ms. */
type DisplayRow = {
  deviceId: number;
  puId: number;
  stId: number;
  text: string;
  ts: number;
  /** The message to the device; storing the text sets its `keptId`. */
  message: Downlink;
};

/** A device has acknowledged its stored texts with these identifiers, both ends included. */
type SeenDisplays = { deviceId: number; fromId: number; toId: number };

/** At most this many are stored for a device; the oldest is deleted. */
const maxKeptDisplays = 10;

/** SQL: how long a text is stored. */
const displayLifetime = `interval '1 day'`;

/**
 * Stores texts in ingest's transaction, which has locked the devices' states, and sets in each message the identifier
 * that acknowledges it. The last text of a state replaces the others.
 */
export async function keepDisplays(tx: Sql, rows: Iterable<DisplayRow>): Promise<void> {
  // Ordered by device, so that two transactions lock in the same order.
  const ordered = [...rows].toSorted((one, other) => one.deviceId - other.deviceId);
  const deviceIds = ordered.map(({ deviceId }) => deviceId);
  const [stored] = await Promise.all([upsert(tx, ordered), removeBeyond(tx, deviceIds)]);
  const byState = new Map(ordered.map((row) => [`${row.deviceId} ${row.puId} ${row.stId}`, row]));
  for (const { device_id, pu_id, st_id, id } of stored) {
    const row = byState.get(`${device_id} ${pu_id} ${st_id}`);
    if (row) row.message.keptId = id;
  }
}

type StoredRow = { device_id: number; pu_id: number; st_id: number; id: number };

async function upsert(tx: Sql, rows: DisplayRow[]): Promise<StoredRow[]> {
  const { rows: stored } = await tx.query<StoredRow>({
    name: 'displays-keep',
    text: `
      insert into kept_display (device_id, pu_id, st_id, text, ts, kept_at)
      select device_id, pu_id, st_id, text::json #>> '{}', ts, service_now()
        from unnest($1::bigint[], $2::integer[], $3::integer[], ${documentsOf('$4')}, $5::bigint[])
          as n (device_id, pu_id, st_id, text, ts)
          on conflict (device_id, pu_id, st_id) do update
         set id = excluded.id, text = excluded.text, ts = excluded.ts, kept_at = excluded.kept_at
      returning device_id, pu_id, st_id, id`,
    values: [
      ...plainArrays(
        rows.map(({ deviceId }) => deviceId),
        rows.map(({ puId }) => puId),
        rows.map(({ stId }) => stId),
      ),
      jsonSequence(rows.map(({ text }) => JSON.stringify(text))),
      ...plainArrays(rows.map(({ ts }) => ts)),
    ],
  });
  return stored;
}

async function removeBeyond(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query({
    name: 'displays-remove-beyond',
    text: `
      delete from kept_display k
       using (select device_id, id, row_number() over (partition by device_id order by id desc) as place
                from kept_display
               where device_id = any($1::bigint[])) as n
       where k.device_id = n.device_id and k.id = n.id and n.place > ${maxKeptDisplays}`,
    values: [deviceIds],
  });
}

/** The texts that these devices have not acknowledged, oldest first; devices without any are missing. */
async function listKept(db: Sql, deviceIds: number[]): Promise<Map<number, Downlink[]>> {
  const { rows } = await db.query<{ device_id: number; id: number; text: string; ts: number }>({
    name: 'displays-kept',
    text: `
      select device_id, id, text, ts
        from kept_display
       where device_id = any(${unseenArray('$1', 'bigint')})
         and kept_at + ${displayLifetime} > service_now()
       order by device_id, id`,
    values: [deviceIds],
  });
  const kept = new Map<number, Downlink[]>();
  for (const { device_id: deviceId, id: keptId, text, ts } of rows) {
    const messages = kept.get(deviceId) ?? [];
    messages.push({ topic: 'display', payload: { text, ts }, keptId });
    kept.set(deviceId, messages);
  }
  return kept;
}

/** Deletes texts that devices have received. Skips a row that is being replaced, rather than wait for it. */
async function forgetSeen(db: Sql, seen: SeenDisplays[]): Promise<void> {
  await db.query({
    name: 'displays-forget-seen',
    text: `
      delete from kept_display
       where ctid = any(array(
         select k.ctid
           from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as n (device_id, from_id, to_id)
           join kept_display k on k.device_id = n.device_id and k.id between n.from_id and n.to_id
            for update of k skip locked))`,
    values: plainArrays(
      seen.map(({ deviceId }) => deviceId),
      seen.map(({ fromId }) => fromId),
      seen.map(({ toId }) => toId),
    ),
  });
}

/** Deletes expired texts. */
export async function forgetOldDisplays(
  db: Database,
  nowTs: WallMs,
  signal?: AbortSignal,
): Promise<void> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from kept_display
        where ctid = any(array(
          select ctid from kept_display
           where kept_at + ${displayLifetime} < ms_to_timestamp($2)
           limit $1
             for update skip locked))`,
      [limit, nowTs],
    );
  await deleteInBatches(deleteSome, { signal });
}

const replaced = transition('replaced');
/** States that accept an answer: the same for `current` and `rejected`. */
const answerable = textList(transitionOf('accepted').from);

/** A device's answer to a profile. `ts`: when, in ms. */
type StoredAnswer = {
  deviceId: number;
  pId: string;
  state: 'current' | 'rejected';
  engine?: 'service' | 'device' | undefined;
  text?: string | undefined;
  ts: number;
};

/**
 * Stores answers in ingest's transaction, which has locked the devices' states. A profile that becomes current replaces
 * the previous one, also if the device then rejects it: it has none from then on. If there are several answers for one
 * profile, the last one counts.
 */
export async function saveProfileAnswers(tx: Sql, changes: readonly StoredAnswer[]): Promise<void> {
  const current = lastOf(changes.filter(({ state }) => state === 'current'));
  if (current.length > 0) {
    await replaceCurrent(tx, current);
    await saveAnswers(tx, current);
  }
  const rejected = lastOf(changes).filter(({ state }) => state === 'rejected');
  if (rejected.length > 0) await saveAnswers(tx, rejected);
}

/** The last answer for each profile of each device. */
const lastOf = (changes: readonly StoredAnswer[]): StoredAnswer[] => [
  ...new Map(changes.map((c) => [`${c.deviceId} ${c.pId}`, c])).values(),
];

async function replaceCurrent(tx: Sql, changes: StoredAnswer[]): Promise<void> {
  await tx.query({
    name: 'profiles-replace-current',
    text: `
      update device_profile dp
         set state = ${replaced.to}, changed_at = ms_to_timestamp(n.ts)
        from unnest($1::bigint[], $2::uuid[], $3::bigint[]) as n (device_id, profile_id, ts)
       where dp.device_id = n.device_id
         and dp.profile_id <> n.profile_id
         and dp.state in ${replaced.from}`,
    values: [changes.map((c) => c.deviceId), changes.map((c) => c.pId), changes.map((c) => c.ts)],
  });
}

async function saveAnswers(tx: Sql, changes: StoredAnswer[]): Promise<void> {
  await tx.query({
    name: 'profiles-save-answers',
    // If the answer is repeated (with another engine, for instance), `changed_at` stays that of the first.
    text: `
      update device_profile dp
         set state = n.state,
             engine = coalesce(n.engine, dp.engine),
             answer_text = n.answer_text,
             changed_at = case when dp.state = n.state then dp.changed_at
                               else ms_to_timestamp(n.ts) end
        from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[])
          as n (device_id, profile_id, state, engine, answer_text, ts)
       where dp.device_id = n.device_id and dp.profile_id = n.profile_id
         and dp.state in ${answerable}`,
    values: [
      changes.map((c) => c.deviceId),
      changes.map((c) => c.pId),
      changes.map((c) => c.state),
      changes.map((c) => c.engine ?? null),
      changes.map((c) => c.text?.replaceAll('\0', '\uFFFD') ?? null),
      changes.map((c) => c.ts),
    ],
  });
}
