import { transitionOf } from '../contract/profile.ts';
import type { Sql } from '../db/sql.ts';
import { textList } from '../db/text-list.ts';
import { transition } from './transition-sql.ts';

const replaced = transition('replaced');
/** Of all answers: what may be answered with `current` may be answered with `rejected`. */
const answerable = textList(transitionOf('accepted').from);

/** What became of a profile on a device. `ts`: when, in ms. */
export type StoredAnswer = {
  deviceId: number;
  pId: string;
  state: 'current' | 'rejected';
  engine?: 'service' | 'device' | undefined;
  text?: string | undefined;
  ts: number;
};

/**
 * Writes answers within ingest's transaction, which holds the devices' states: a profile that
 * becomes current replaces the one before. Of several answers for one profile the last counts.
 */
export async function saveProfileAnswers(tx: Sql, changes: readonly StoredAnswer[]): Promise<void> {
  const last = [...new Map(changes.map((c) => [`${c.deviceId} ${c.pId}`, c])).values()];
  const current = last.filter(({ state }) => state === 'current');
  if (current.length > 0) await replaceCurrent(tx, current);
  if (last.length > 0) await saveAnswers(tx, last);
}

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
    // Said once more (with another engine, say), a profile is current since it first was.
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
