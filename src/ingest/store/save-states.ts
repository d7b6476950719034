import { encodeRuntime } from '../../engine/runtime-codec.ts';
import { documentsOf, jsonSequence, plainArray } from '../../db/array.ts';
import type { Sql } from '../../db/sql.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import { evidenceWrite, mayHaveRows } from '../rules/evidence-log.ts';
import type { EvidenceWrite } from '../rules/evidence-log.ts';

/** A device as it stands after the transaction, and what of its evidence is written. */
type Saved = { context: DeviceContext; write: EvidenceWrite };

const toSaved = (context: DeviceContext): Saved => ({ context, write: evidenceWrite(context) });

/** Writes where devices stand now; says how many still stood at the version before. */
export async function saveStates(tx: Sql, contexts: DeviceContext[]): Promise<number> {
  const saved = contexts.map(toSaved);
  const [stood] = await Promise.all([updateStates(tx, saved), saveLogs(tx, saved)]);
  return stood;
}

/** The same of devices that did not move: what their evaluation has collected is all there is to write. */
export async function saveRuntimes(tx: Sql, contexts: DeviceContext[]): Promise<number> {
  const saved = contexts.map(toSaved);
  const { whole = [], added = [] } = Object.groupBy(saved, ({ write }) => write.kind);
  const [first, second] = await Promise.all([
    whole.length > 0 ? updateRuntimes(tx, whole) : 0,
    added.length > 0 ? updateVersions(tx, added) : 0,
    saveLogs(tx, saved),
  ]);
  return first + second;
}

async function updateStates(tx: Sql, saved: Saved[]): Promise<number> {
  const contexts = saved.map(({ context }) => context);
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
             runtime = case when n.is_whole then n.runtime::json else s.runtime end
        from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[],
                    $6::bigint[], $7::integer[], $8::integer[], $9::boolean[], ${documentsOf('$10')},
                    $11::boolean[])
          as n (device_id, version, pu_id, st_id, state_at,
                reported_at, reported_pu_id, reported_st_id, answers_profiles, runtime, is_whole)
       where s.device_id = n.device_id and s.version = n.version`,
    values: [
      ...placesOf(contexts),
      plainArray(contexts.map((c) => c.place.puId)),
      plainArray(contexts.map((c) => c.place.stId)),
      plainArray(contexts.map((c) => c.placeTs)),
      plainArray(contexts.map((c) => c.reported?.ts ?? null)),
      plainArray(contexts.map((c) => c.reported?.puId ?? null)),
      plainArray(contexts.map((c) => c.reported?.stId ?? null)),
      plainArray(contexts.map((c) => c.answersProfiles)),
      jsonSequence(saved.map(storedRuntime)),
      plainArray(saved.map(({ write }) => write.kind === 'whole')),
    ],
  });
  return rowCount ?? 0;
}

async function updateRuntimes(tx: Sql, saved: Saved[]): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'ingest-runtimes',
    text: `
      update device_state s
         set version = s.version + 1, runtime = n.runtime::json
        from unnest($1::bigint[], $2::bigint[], ${documentsOf('$3')}) as n (device_id, version, runtime)
       where s.device_id = n.device_id and s.version = n.version`,
    values: [
      ...placesOf(saved.map(({ context }) => context)),
      jsonSequence(saved.map(storedRuntime)),
    ],
  });
  return rowCount ?? 0;
}

/** What is stored of the evidence as a whole stays, and is not written again. */
async function updateVersions(tx: Sql, saved: Saved[]): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'ingest-versions',
    text: `
      update device_state s
         set version = s.version + 1
        from unnest($1::bigint[], $2::bigint[]) as n (device_id, version)
       where s.device_id = n.device_id and s.version = n.version`,
    values: placesOf(saved.map(({ context }) => context)),
  });
  return rowCount ?? 0;
}

/** What is added to evidence; where the whole is written, what was added before goes. */
async function saveLogs(tx: Sql, saved: Saved[]): Promise<void> {
  const ended = saved.filter(
    ({ context, write }) => write.kind === 'whole' && mayHaveRows(context),
  );
  const added = saved.flatMap(({ context, write }) =>
    write.kind === 'added' && write.text !== null
      ? [{ context, base: write.base, text: write.text }]
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
          ...placesOf(added.map(({ context }) => context)),
          plainArray(added.map(({ base }) => base)),
          jsonSequence(added.map(({ text }) => text)),
        ],
      }),
  ]);
}

async function removeLogs(tx: Sql, ended: Saved[]): Promise<void> {
  await tx.query({
    name: 'ingest-end-evidence',
    text: 'delete from evidence_log where device_id = any($1::bigint[])',
    values: [plainArray(ended.map(({ context }) => context.device.deviceId))],
  });
}

/** `$1` and `$2`: whose rows these are, and the version that each must still have. */
const placesOf = (contexts: DeviceContext[]): [string, string] => [
  plainArray(contexts.map(({ device }) => device.deviceId)),
  plainArray(contexts.map(({ version }) => version)),
];

function storedRuntime({ context: { current, runtime }, write }: Saved): string | null {
  if (write.kind !== 'whole' || !current || !runtime) return null;
  return encodeRuntime(current.profile, runtime, write.log);
}
