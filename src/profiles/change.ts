import type { Bus } from '../bus/bus.ts';
import { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import type { LimitsOf } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { checkPurposes, replaceWithin } from './install.ts';

// Other limits for many devices with the same purposes, as a job: those that have other purposes by then keep them.

/** Numbers to put in the place of others, in one cause of an event. `cause`: counted from 0. */
type LimitChange = {
  puId: number;
  stId: number;
  evId: number;
  cause: number;
  threshold?: Record<string, number> | undefined;
  thresholds?: Record<string, number> | undefined;
};

/**
 * One profile in the place of another, both as the text of their purposes. `pId`: of the new one. `ifPId`: only in the
 * place of this very profile; absent: of any with these purposes.
 */
type Replacement = { pId: string; ifPId?: string; from: string; to: string };

/** Both texts are stored with the job, and read for each piece of it. */
const mostBytes = 64 * 1024;

/**
 * The profile `ifPId` with other numbers, as `pId`. Throws `not-found`, and `invalid-input` if a change names what is
 * not there, or if the purposes would not be valid.
 */
export async function planLimits(
  tx: Sql,
  limitsOf: LimitsOf,
  accountId: number,
  { ifPId, changes, pId }: { ifPId: string; changes: readonly LimitChange[]; pId: string },
): Promise<Replacement> {
  const { rows } = await tx.query<{ text: string }>(
    `select c.purposes::text as text
       from profile p
       join profile_content c on c.id = p.content_id
      where p.account_id = $1 and p.id = $2`,
    [accountId, ifPId],
  );
  const from = rows[0]?.text;
  if (from === undefined)
    throw new DomainError('not-found', 'No such profile, or no device needs it any more.');
  const purposes = JSON.parse(from) as Purpose[];
  const problems = changes.flatMap((change, n) => changeNumbers(purposes, change, `/changes/${n}`));
  const to = JSON.stringify(purposes);
  if (problems.length === 0) problems.push(...problemsOf(purposes, limitsOf(accountId)));
  if (Math.max(from.length, to.length) > mostBytes)
    problems.push({ path: '/ifPId', message: `expected a profile of at most ${mostBytes} bytes` });
  if (problems.length > 0)
    throw new DomainError('invalid-input', 'The limits cannot be changed like this.', { problems });
  return { pId, from, to };
}

/** The way back, for devices that got their profile by this replacement and by no other. */
export const planBack = ({ pId: ifPId, from, to }: Replacement, pId: string): Replacement => ({
  pId,
  ifPId,
  from: to,
  to: from,
});

/** Changes the numbers in place. Returns what is wrong: only a number that is there can be replaced. */
function changeNumbers(purposes: Purpose[], change: LimitChange, path: string): Problem[] {
  const { puId, stId, evId, cause: index } = change;
  const purpose = purposes.find((one) => one.puId === puId);
  const state = purpose?.states.find((one) => one.stId === stId);
  const cause = state?.events.find((one) => one.evId === evId)?.causes[index];
  if (!cause) return [{ path, message: 'the profile has no such cause' }];
  return (['threshold', 'thresholds'] as const).flatMap((member) =>
    Object.entries(change[member] ?? {}).flatMap(([name, number]) => {
      const numbers = (cause[member] ?? {}) as Record<string, unknown>;
      if (!Object.hasOwn(numbers, name) || typeof numbers[name] !== 'number')
        return [{ path: `${path}/${member}/${name}`, message: 'the cause has no such number' }];
      numbers[name] = number;
      return [];
    }),
  );
}

function problemsOf(purposes: Purpose[], limits: QuotaSettings): Problem[] {
  const invalid = purposes.flatMap((purpose, n) =>
    (Purpose.safeParse(purpose).error?.issues ?? []).map(({ path, message }) => ({
      path: ['', 'purposes', n, ...path.map(String)].join('/'),
      message,
    })),
  );
  return invalid.length > 0 ? invalid : checkPurposes(purposes, limits);
}

type Piece = { accountId: number; uuids: string[]; labels: string[] | null };

/** Does it for some devices of a job, whose account's usage is locked. `after`: what to do after the commit. */
export async function replaceProfiles(
  tx: Sql,
  { bus, quotas }: { bus: Bus; quotas: QuotaSettings },
  piece: Piece,
  replacement: Replacement,
): Promise<{ failed: { deviceAuthUuid: string; reason: string }[]; after: () => void }> {
  await tx.query('savepoint unreplaced');
  let replaced: Awaited<ReturnType<typeof replaceWithin>>;
  try {
    replaced = await replaceWithin(tx, piece, replacement, quotas);
  } catch (error) {
    if (!(error instanceof DomainError && error.code === 'quota-exceeded')) throw error;
    await tx.query('rollback to savepoint unreplaced');
    const failed = piece.uuids.map((uuid) => ({ deviceAuthUuid: uuid, reason: error.code }));
    return { failed, after: () => undefined };
  }
  const { claimed, changed } = replaced;
  const there = new Set(claimed.map(({ uuid }) => uuid));
  const done = new Set(changed.map(({ uuid }) => uuid));
  const failed = piece.uuids
    .filter((uuid) => !done.has(uuid))
    .map((uuid) => ({
      deviceAuthUuid: uuid,
      reason: there.has(uuid) ? 'changed' : 'no-such-device',
    }));
  const after = () => {
    for (const device of changed) bus.publish('device', { ...device, push: 'profile' });
  };
  return { failed, after };
}
