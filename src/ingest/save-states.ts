import { lastOf } from '../contract/values.ts';
import { documentsOf, jsonSequence, plainArray, plainArrays, type Sql } from '../db/sql.ts';
import { CowArray, type LastSeen, type Newest } from '../engine/last-seen.ts';
import { encodeRuntime } from '../engine/runtime-codec.ts';
import { findNewest } from '../measurements/store.ts';
import { evidenceWrite, type EvidenceWrite, mayHaveRows } from './rules/evidence-log.ts';
import type { ClockRow, DeviceState } from './rules/model.ts';
import { ofDevice, type Remarked, type Watermark } from './rules/watermark.ts';

/** A device's state after the transaction, and what is written of its evidence. */
type Saved = { deviceState: DeviceState; write: EvidenceWrite };

const toSaved = (deviceState: DeviceState): Saved => ({
  deviceState,
  write: evidenceWrite(deviceState),
});

/** Writes the states of devices. Returns how many still had the version before. */
export async function saveStates(tx: Sql, deviceStates: DeviceState[]): Promise<number> {
  const saved = deviceStates.map(toSaved);
  const [stood] = await Promise.all([updateStates(tx, saved), saveLogs(tx, saved)]);
  return stood;
}

/** The same for devices whose row changes only in its evidence or version. */
export async function saveRuntimes(tx: Sql, deviceStates: DeviceState[]): Promise<number> {
  const saved = deviceStates.map(toSaved);
  const { whole = [], added = [] } = Object.groupBy(saved, ({ write }) => write.kind);
  const [first, second] = await Promise.all([
    whole.length > 0 ? updateRuntimes(tx, whole) : 0,
    added.length > 0 ? updateVersions(tx, added) : 0,
    saveLogs(tx, saved),
  ]);
  return first + second;
}

async function updateStates(tx: Sql, saved: Saved[]): Promise<number> {
  const deviceStates = saved.map(({ deviceState }) => deviceState);
  const { rowCount } = await tx.query({
    name: 'ingest-states',
    text: `
      update device_state s
         set version = s.version + 1,
             pu_id = n.pu_id,
             st_id = n.st_id,
             state_at = ms_to_timestamp(n.state_at),
             reported_at = ms_to_timestamp(n.reported_at),
             reported_pu_id = n.reported_pu_id,
             reported_st_id = n.reported_st_id,
             answers_profiles = n.answers_profiles,
             arrived_at = ms_to_timestamp(n.arrived_at),
             noted = coalesce(n.noted, s.noted),
             runtime = case when n.is_whole then n.runtime::json else s.runtime end
        from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[],
                    $6::bigint[], $7::integer[], $8::integer[], $9::boolean[], ${documentsOf('$10')},
                    $11::boolean[], $12::bigint[], $13::text[])
          as n (device_id, version, pu_id, st_id, state_at,
                reported_at, reported_pu_id, reported_st_id, answers_profiles, runtime, is_whole,
                arrived_at, noted)
       where s.device_id = n.device_id and s.version = n.version`,
    values: [
      ...plainArrays(
        ...placesOf(deviceStates),
        deviceStates.map((c) => c.place.puId),
        deviceStates.map((c) => c.place.stId),
        deviceStates.map((c) => c.placeTs),
        deviceStates.map((c) => c.reported?.ts ?? null),
        deviceStates.map((c) => c.reported?.puId ?? null),
        deviceStates.map((c) => c.reported?.stId ?? null),
        deviceStates.map((c) => c.answersProfiles),
      ),
      jsonSequence(saved.map(storedRuntime)),
      plainArray(saved.map(({ write }) => write.kind === 'whole')),
      arrivalsOf(saved),
      deviceStates.map(({ given }) => (given.isNoted ? given.basis : null)),
    ],
  });
  return rowCount ?? 0;
}

async function updateRuntimes(tx: Sql, saved: Saved[]): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'ingest-runtimes',
    text: `
      update device_state s
         set version = s.version + 1,
             runtime = n.runtime::json,
             arrived_at = ms_to_timestamp(n.arrived_at)
        from unnest($1::bigint[], $2::bigint[], ${documentsOf('$3')}, $4::bigint[])
          as n (device_id, version, runtime, arrived_at)
       where s.device_id = n.device_id and s.version = n.version`,
    values: [
      ...plainArrays(...placesOf(saved.map(({ deviceState }) => deviceState))),
      jsonSequence(saved.map(storedRuntime)),
      arrivalsOf(saved),
    ],
  });
  return rowCount ?? 0;
}

/** The evidence that is stored as a whole stays as it is. */
async function updateVersions(tx: Sql, saved: Saved[]): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'ingest-versions',
    text: `
      update device_state s
         set version = s.version + 1, arrived_at = ms_to_timestamp(n.arrived_at)
        from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as n (device_id, version, arrived_at)
       where s.device_id = n.device_id and s.version = n.version`,
    values: [
      ...plainArrays(...placesOf(saved.map(({ deviceState }) => deviceState))),
      arrivalsOf(saved),
    ],
  });
  return rowCount ?? 0;
}

/** Adds to stored evidence. If evidence is written as a whole, removes what was added to it before. */
async function saveLogs(tx: Sql, saved: Saved[]): Promise<void> {
  const ended = saved.filter(
    ({ deviceState, write }) => write.kind === 'whole' && mayHaveRows(deviceState),
  );
  const added = saved.flatMap(({ deviceState, write }) =>
    write.kind === 'added' && write.text !== null
      ? [{ deviceState, base: write.base, text: write.text }]
      : [],
  );
  await Promise.all([
    ended.length > 0 && removeLogs(tx, ended),
    added.length > 0 &&
      tx.query({
        name: 'ingest-add-evidence',
        text: `
          insert into evidence_log (device_id, version, base, measurements)
          select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], ${documentsOf('$4')})`,
        values: [
          ...plainArrays(
            ...placesOf(added.map(({ deviceState }) => deviceState)),
            added.map(({ base }) => base),
          ),
          jsonSequence(added.map(({ text }) => text)),
        ],
      }),
  ]);
}

async function removeLogs(tx: Sql, ended: Saved[]): Promise<void> {
  await tx.query({
    name: 'ingest-end-evidence',
    text: 'delete from evidence_log where device_id = any($1::bigint[])',
    values: [plainArray(ended.map(({ deviceState }) => deviceState.device.deviceId))],
  });
}

/** `$1` and `$2`: the devices, and the version that each must still have. */
const placesOf = (deviceStates: DeviceState[]): [number[], number[]] => [
  deviceStates.map(({ device }) => device.deviceId),
  deviceStates.map(({ version }) => version),
];

/** Of each device, its last arrival. */
const arrivalsOf = (saved: Saved[]): string =>
  plainArray(saved.map(({ deviceState }) => deviceState.arrival?.ts ?? null));

function storedRuntime({ deviceState: { current, runtime }, write }: Saved): string | null {
  if (write.kind !== 'whole' || !current || !runtime) return null;
  return encodeRuntime(current.profile, runtime, write.log);
}

/** The stored watermarks of a device, by sense; under `ofDevice`, when the device was told about its clock. */
export type StoredClocks = Record<string, Watermark | Remarked>;

/** Writes the changed watermarks of senses. */
export async function saveClocks(tx: Sql, rows: Iterable<ClockRow>): Promise<void> {
  // In order, so that two transactions that write the same ones do not deadlock.
  const ordered = [...rows].toSorted(
    (one, other) => one.deviceId - other.deviceId || (one.sId < other.sId ? -1 : 1),
  );
  await tx.query({
    name: 'ingest-clocks',
    text: `
      insert into sense_clock (device_id, s_id, state)
      select device_id, s_id, state::json
        from unnest($1::bigint[], $2::text[], ${documentsOf('$3')}) as n (device_id, s_id, state)
          on conflict (device_id, s_id) do update set state = excluded.state`,
    values: [
      plainArray(ordered.map(({ deviceId }) => deviceId)),
      ordered.map(({ sId }) => sId),
      jsonSequence(ordered.map(({ state }) => JSON.stringify(state))),
    ],
  });
}

/** The watermarks that still apply, and the newest values that result from them and from the history. */
export function clocksOf(
  { watched }: Pick<DeviceState, 'watched'>,
  stored: StoredClocks | null,
  newest: LastSeen,
): Pick<DeviceState, 'seen' | 'clocks' | 'remarked'> {
  const clocks = new Map<string, Watermark>();
  const seen = [...watched.keys()].map((sId): Newest | undefined => {
    const last = Object.hasOwn(newest, sId) ? newest[sId] : undefined;
    const clock = stored && Object.hasOwn(stored, sId) ? (stored[sId] as Watermark) : undefined;
    if (!last || last.ts !== clock?.newestTs) return last;
    clocks.set(sId, clock);
    const { clockTs, vals = clockTs === last.ts ? last.vals : [] } = clock;
    return clockTs === null ? undefined : { ts: clockTs, vals };
  });
  return {
    seen: CowArray.of(seen),
    clocks: clocks.size > 0 ? clocks : null,
    remarked: (stored?.[ofDevice] as Remarked | undefined) ?? null,
  };
}

/**
 * Begins the watermarks of senses whose newest value was ahead when no profile of the device read them: it is later
 * than a value that arrives now may be, and no watermark is stored. They begin at the newest stored value that is not
 * ahead. `untilTs`: later values are ahead, ms. Returns all watermarks stored afterwards.
 */
export async function beginClocks(
  tx: Sql,
  { device: { deviceId }, watched }: Pick<DeviceState, 'device' | 'watched'>,
  known: { stored: StoredClocks | null; newest: LastSeen; untilTs: number },
): Promise<StoredClocks | null> {
  const { stored, newest, untilTs } = known;
  const isUnknown = (sId: string) => {
    const { ts = -Infinity } = newest[sId] ?? {};
    return ts > untilTs && (stored?.[sId] as Watermark | undefined)?.newestTs !== ts;
  };
  const begun = Object.keys(newest).filter((sId) => watched.has(sId) && isUnknown(sId));
  if (begun.length === 0) return stored;
  const wanted = begun.map((sId) => ({ deviceId, sId }));
  const before = (await findNewest(tx, wanted, untilTs)).get(deviceId) ?? {};
  const states = begun.map((sId): [string, Watermark] => {
    const last = newest[sId];
    const { ts: clockTs = null, vals = [] } = before[sId] ?? {};
    const { arrivedTs } = (stored?.[sId] ?? {}) as Partial<Watermark>;
    const newestNow = { newestTs: last?.ts ?? 0, newestVal: lastOf(last) };
    return [sId, { ...newestNow, clockTs, vals, late: null, arrivedTs }];
  });
  await saveClocks(
    tx,
    states.map(([sId, state]) => ({ deviceId, sId, state })),
  );
  return { ...stored, ...Object.fromEntries(states) };
}

/**
 * What there is to report about a sense's clock. `clockTs`: the newest time that was not ahead, ms, null if all were;
 * older values are too late. `late`: how many too late values have come since the last one that was not. `aheadTs`: the
 * newest time, if it is later than `clockTs`.
 */
type ClockNote = {
  sId: string;
  clockTs: number | null;
  late: number;
  aheadTs: number | null;
};

/**
 * The notes of those senses of a device that have any, and when the device was last told about its clock, ms. `newest`:
 * the newest values in the history.
 */
export async function findClockNotes(
  db: Sql,
  deviceId: number,
  newest: LastSeen,
): Promise<{ notes: ClockNote[]; remarked: Remarked | null }> {
  const { rows } = await db.query<{ s_id: string; state: Watermark | Remarked }>(
    'select s_id, state from sense_clock where device_id = $1 order by s_id',
    [deviceId],
  );
  const remarked = rows.find(({ s_id: sId }) => sId === ofDevice)?.state as Remarked | undefined;
  const senses = rows.filter(({ s_id: sId }) => sId !== ofDevice);
  return { notes: notesOf(senses as SenseRow[], newest), remarked: remarked ?? null };
}

type SenseRow = { s_id: string; state: Watermark };

function notesOf(rows: SenseRow[], newest: LastSeen): ClockNote[] {
  const isValid = ({ s_id, state }: SenseRow) =>
    Object.hasOwn(newest, s_id) && newest[s_id]?.ts === state.newestTs;
  return rows.filter(isValid).flatMap(({ s_id: sId, state }) => {
    const { newestTs, clockTs } = state;
    const late = state.late?.total ?? 0;
    const aheadTs = newestTs === clockTs ? null : newestTs;
    return late > 0 || aheadTs !== null ? [{ sId, clockTs, late, aheadTs }] : [];
  });
}

/** The watermark of each of these senses, ms. Usually it is the history's newest value, which is given by device. */
export async function listClockTimes(
  db: Sql,
  newest: ReadonlyMap<number, LastSeen>,
): Promise<{ deviceId: number; sId: string; ts: number }[]> {
  const { rows } = await db.query<{ device_id: number; s_id: string; state: Watermark }>(
    'select device_id, s_id, state from sense_clock where device_id = any($1::bigint[]) and s_id <> $2',
    [[...newest.keys()], ofDevice],
  );
  const nameOf = (deviceId: number, sId: string) => `${deviceId} ${sId}`;
  const clocks = new Map(rows.map((row) => [nameOf(row.device_id, row.s_id), row.state]));
  return [...newest].flatMap(([deviceId, seen]) =>
    Object.entries(seen).map(([sId, { ts }]) => {
      const clock = clocks.get(nameOf(deviceId, sId));
      return { deviceId, sId, ts: clock?.newestTs === ts ? (clock.clockTs ?? ts) : ts };
    }),
  );
}
