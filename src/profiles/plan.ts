import { type Severity, severityOf } from '../contract/actions.ts';
import { type Cause, Purpose, type PurposePath } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import type { LimitsOf } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';
import {
  checkPurposes,
  firstSilenceMs,
  getProfileOf,
  hashOf,
  namesOf,
  placeIn,
  readAsked,
  storeContent,
  toText,
  unfit,
} from './install.ts';
import { findContentOf } from './queries.ts';

/*
 * What a change of many devices' profiles installs, and on which devices: the same purposes on all, or in the place of
 * each of some profiles that profile with other limits.
 */

/** What to put in the place of what is there, in one cause of an event. `cause`: counted from 0. */
type LimitChange = {
  puId: number;
  stId: number;
  evId: number;
  cause: number;
  threshold?: Record<string, number> | undefined;
  thresholds?: Record<string, number> | undefined;
  /** How bad the event's alarm is. */
  severity?: Severity | undefined;
  /** The event's name, which may contain the numbers: only `from` is replaced. */
  name?: { from: string; to: string } | undefined;
};

type AskedPurposes = { purposeUuids: string[]; purposes: Purpose[] };

/** `path`: of it in the request. `ifPId` null: for devices without a profile. */
type AskedLimits = { path: string } & (
  { ifPId: string; changes: readonly LimitChange[] } | ({ ifPId: null } & AskedPurposes)
);

export type AskedChange = { limits: readonly AskedLimits[] } | AskedPurposes;

/** What a job installs, as it is stored with it. */
export type PlannedInstall = {
  pId: string;
  /** The hash of the new content, in hex. */
  to: string;
  /** Only in the place of the content with this hash; null: of none. Absent: of any. */
  from?: string | null;
  silenceMs: number | null;
};

/** What changes in the profile `ifPId`. */
type LimitDifference = Pick<LimitChange, 'puId' | 'stId' | 'evId'> & { ifPId: string } & (
    | { cause: number; sId: string; limit: string; from: number; to: number }
    | { severity: { from: Severity; to: Severity } }
    | { name: { from: string; to: string } }
  );

/** One of the profiles that are installed. `from` as in `PlannedInstall`; `pathOf`: of its purposes in the request. */
export type Plan = {
  text: string;
  from?: string | null;
  purposes: Purpose[];
  differences: LimitDifference[];
  pathOf: PurposePath;
};

/** Bytes of profiles whose limits one change replaces. */
const mostBytes = 4 * 1024 * 1024;

/**
 * What is installed, and in the place of what. `labels`: the caller sees only devices with one of these; null: all.
 * Throws `not-found`, and `invalid-input` if a limit names what is not there, or if the purposes are not valid
 * together.
 */
export async function planInstalls(
  sql: Sql,
  { accountId, labels }: { accountId: number; labels: readonly string[] | null },
  asked: AskedChange,
  limits: QuotaSettings,
): Promise<Plan[]> {
  if (!('limits' in asked)) return [await planPurposes(sql, accountId, asked, limits)];
  const plans: Plan[] = [];
  let bytes = 0;
  for (const each of asked.limits) {
    if (each.ifPId === null) {
      const { path } = each;
      plans.push({ ...(await planPurposes(sql, accountId, each, limits, path)), from: null });
      continue;
    }
    const old = await findContentOf(sql, accountId, each.ifPId, labels);
    if (old === null)
      throw new DomainError('not-found', 'No such profile, or no device needs it any more.');
    bytes += Buffer.byteLength(old);
    if (bytes > mostBytes) {
      const message = `these profiles have more than ${mostBytes} bytes together: change fewer at once`;
      throw invalidLimits([{ path: `${each.path}/ifPId`, message }]);
    }
    const from = hexOf(old);
    if (plans.some((plan) => plan.from === from))
      throw invalidLimits([
        { path: `${each.path}/ifPId`, message: 'another one has the same purposes' },
      ]);
    plans.push({ ...planLimits(each, old, limits), from });
    await yieldToEventLoop();
  }
  return plans;
}

const invalidLimits = (problems: Problem[]) =>
  new DomainError('invalid-input', 'The limits cannot be changed like this.', { problems });

async function planPurposes(
  sql: Sql,
  accountId: number,
  { purposeUuids, purposes: given }: AskedPurposes,
  limits: QuotaSettings,
  path = '',
): Promise<Plan> {
  const asked = { purposeUuids, purposes: given };
  const placed = placeIn(asked);
  const { purposes, text, problems } = await readAsked(sql, accountId, asked, limits);
  if (problems.length > 0)
    throw unfit(problems.map((problem) => ({ ...problem, path: path + problem.path })));
  return { text: text.text, purposes, differences: [], pathOf: (place) => path + placed(place) };
}

/** The profile `old` with other limits. */
function planLimits(
  { path, ifPId, changes }: Extract<AskedLimits, { ifPId: string }>,
  old: string,
  limits: QuotaSettings,
): Plan {
  const purposes = JSON.parse(old) as Purpose[];
  const differences: LimitDifference[] = [];
  const problems = changes.flatMap((change, n) =>
    changeLimit(purposes, ifPId, change, `${path}/changes/${n}`, differences),
  );
  if (problems.length === 0) problems.push(...problemsOf(purposes, limits));
  if (problems.length > 0) throw invalidLimits(problems);
  const pathOf = placeIn({ purposeUuids: [], purposes });
  return { text: JSON.stringify(purposes), purposes, differences, pathOf };
}

export const hexOf = (text: string) => hashOf(text).toString('hex');

/**
 * Plans a job and stores the profiles that it installs, in the transaction that stores the job; the account's usage is
 * locked. `names`: of their purposes. Throws as `planInstalls` does, and `quota-exceeded`.
 */
export async function planChange(
  tx: Sql,
  { quotas, limitsOf }: { quotas: QuotaSettings; limitsOf: LimitsOf },
  {
    accountId,
    labels,
    asked,
    changeId,
    by,
  }: {
    accountId: number;
    labels: readonly string[] | null;
    asked: AskedChange;
    changeId: string;
    by: WrittenBy;
  },
): Promise<{
  change: { changeId: string } & (PlannedInstall | { installs: PlannedInstall[] });
  names: string[];
}> {
  const plans = await planInstalls(tx, { accountId, labels }, asked, limitsOf(accountId));
  const installs: PlannedInstall[] = [];
  for (const { text, from, purposes } of plans) {
    const contentId = await storeContent(tx, accountId, toText(purposes), quotas);
    const pId = await getProfileOf(tx, { accountId, contentId, changeId, by });
    const silenceMs = firstSilenceMs(purposes);
    installs.push({ pId, to: hexOf(text), ...(from === undefined ? {} : { from }), silenceMs });
  }
  const [first, ...others] = installs;
  return {
    // Alone as earlier versions know it: they may do the job, too.
    change: { changeId, ...(first && others.length === 0 ? first : { installs }) },
    names: namesOf(plans.flatMap(({ purposes }) => purposes)),
  };
}

/** Changes in place, and adds to `differences`. Returns what is wrong: only what is there can be replaced. */
function changeLimit(
  purposes: Purpose[],
  ifPId: string,
  { puId, stId, evId, cause: index, severity, name, ...numbers }: LimitChange,
  path: string,
  differences: LimitDifference[],
): Problem[] {
  const state = purposes.find((one) => one.puId === puId)?.states.find((one) => one.stId === stId);
  const event = state?.events.find((one) => one.evId === evId);
  const cause = event?.causes[index];
  if (!event || !cause) return [{ path, message: 'the profile has no such cause' }];
  const at = { ifPId, puId, stId, evId };
  const problems = (['threshold', 'thresholds'] as const).flatMap((member) =>
    Object.entries(numbers[member] ?? {}).flatMap(([limit, to]) => {
      const known = (cause[member] ?? {}) as Record<string, unknown>;
      // A cause without a delay has one of 0 ms, but that is not written.
      const isDelay = member === 'threshold' && limit === 'forMs';
      const from = Object.hasOwn(known, limit) ? known[limit] : isDelay ? 0 : undefined;
      if (typeof from !== 'number')
        return [{ path: `${path}/${member}/${limit}`, message: 'the cause has no such number' }];
      if (isDelay && to === 0) delete known[limit];
      else known[limit] = to;
      if (member === 'threshold' && isDelay) cause.threshold = known as Cause['threshold'];
      if (from !== to) differences.push({ ...at, cause: index, sId: cause.sId, limit, from, to });
      return [];
    }),
  );
  if (severity !== undefined) {
    const from = severityOf(event.actions);
    event.actions.severity = severity;
    if (from !== severity) differences.push({ ...at, severity: { from, to: severity } });
  }
  if (name === undefined) return problems;
  if ((event.name ?? '') !== name.from)
    return [...problems, { path: `${path}/name/from`, message: 'the event has another name' }];
  event.name = name.to;
  if (name.from !== name.to) differences.push({ ...at, name });
  return problems;
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
