import { setImmediate } from 'node:timers/promises';
import { sensesOf } from '../contract/senses.ts';
import type { Sql } from '../db/sql.ts';
import { numbered, type Profile } from '../engine/compile.ts';
import type { Newest } from '../engine/last-seen.ts';
import type { StoredRuntime } from '../engine/read-runtime.ts';
import { addedTo, replay } from '../engine/replay.ts';
import type { Runtime } from '../engine/runtime.ts';
import type { DeviceQueue } from './queue/device-queue.ts';
import type { DeviceContext, EvidenceLog, Reported } from './rules/device-context.ts';
import { logOfRead } from './rules/evidence-log.ts';
import { Budget, evidenceCost } from './rules/model.ts';
import { Pages } from './rules/pages.ts';
import { aheadMs } from './rules/sense-clock.ts';
import { beginClocks, clocksOf, type FindNewest } from './save-states.ts';
import type { ContextCache } from './store/context-cache.ts';
import { claimDue } from './store/due.ts';
import { type Layouts, loadContents, pickLeft, profileOf } from './store/load-contents.ts';
import { claimStates, type DeviceRow, listDeviceStates } from './write.ts';

/** How much of what was read is taken in at a stretch: `Budget`. */
const readAtOnce = 1_000;

const none: ReadonlyMap<string, number> = new Map();

/** Of devices whose alarms wait for a fresh measurement: of which senses. */
export type ListWaitingSenses = (
  tx: Sql,
  deviceIds: number[],
) => Promise<ReadonlyMap<number, ReadonlySet<string>>>;

const noneWait: ListWaitingSenses = async () => new Map();

/** What was read, by device; `left`: queues that there was no room for. */
type Loaded = {
  contexts: ReadonlyMap<number, DeviceContext>;
  left: ReadonlySet<DeviceQueue>;
};

/**
 * `ticked`: those of them that have nothing but ticks, with the time of the last one; absent: none. `arrived`: when the
 * first message or tick of each arrived, ms; absent: nothing that is stored is ahead of it.
 */
export type ContextLoader = (
  tx: Sql,
  queues: DeviceQueue[],
  ticked?: ReadonlyMap<DeviceQueue, number>,
  arrived?: ReadonlyMap<DeviceQueue, number>,
) => Promise<Loaded>;

/**
 * Reads what is to be known of devices, and makes those with a profile the transaction's own: another
 * process that has one of their messages under way is waited for, so that what is the newest in the
 * history is the newest. A device that was removed has none, nor has one with ticks alone that is not due any
 * more, or that another process has. Reads as many of the devices as
 * `remembered` has room for at once, one at least.
 */
export function createContextLoader(
  findNewest: FindNewest,
  remembered: ContextCache,
  listWaitingSenses: ListWaitingSenses = noneWait,
): ContextLoader {
  return async (tx, queues, ticked = new Map(), arrived = new Map()) => {
    const left = await pickLeft(tx, queues, remembered);
    const taken = left.size > 0 ? queues.filter((queue) => !left.has(queue)) : queues;
    const rows = await claimAndList(tx, taken, ticked);
    const layouts = await loadContents(tx, rows, remembered);
    const read = await toContexts(rows, layouts);
    const newest = await findNewest(tx, read.flatMap(wantedOf));
    const waiting = await listWaitingSenses(
      tx,
      rows.map(({ device_id }) => device_id),
    );
    const storedClocks = new Map(rows.map(({ device_id, clocks }) => [device_id, clocks]));
    const arrivals = new Map([...arrived].map(([{ device }, ts]) => [device.deviceId, ts]));
    const contexts = new Map<number, DeviceContext>();
    for (const context of read) {
      const { deviceId } = context.device;
      const waitingSenses = waiting.get(deviceId) ?? null;
      const untilTs = (arrivals.get(deviceId) ?? Infinity) + aheadMs;
      const known = {
        stored: storedClocks.get(deviceId) ?? null,
        newest: newest.get(deviceId) ?? {},
        untilTs,
      };
      const stored = await beginClocks(tx, context, known, findNewest);
      const clocks = clocksOf(context, stored, known.newest);
      contexts.set(deviceId, { ...context, ...clocks, waitingSenses });
    }
    return { contexts, left };
  };
}

async function claimAndList(
  tx: Sql,
  queues: DeviceQueue[],
  ticked: ReadonlyMap<DeviceQueue, number>,
): Promise<DeviceRow[]> {
  const idsOf = (some: DeviceQueue[]) => some.map(({ device }) => device.deviceId);
  const { due = [], sent = [] } = Object.groupBy(queues, (queue) =>
    ticked.has(queue) ? 'due' : 'sent',
  );
  const [claimed, , rows] = await Promise.all([
    due.length > 0 ? claimDue(tx, idsOf(due), Math.max(...ticked.values())) : [],
    sent.length > 0 && claimStates(tx, idsOf(sent)),
    listDeviceStates(tx, idsOf(queues)),
  ]);
  if (claimed.length === due.length) return rows;
  const left = new Set(idsOf(due));
  for (const deviceId of claimed) left.delete(deviceId);
  return rows.filter(({ device_id }) => !left.has(device_id));
}

/** Returns to the event loop now and then: evidence can be long, and there can be many devices. */
async function toContexts(rows: DeviceRow[], layouts: Layouts): Promise<DeviceContext[]> {
  const contexts: DeviceContext[] = [];
  let budget = new Budget(readAtOnce);
  for (const row of rows) {
    if (budget.isSpent) {
      await setImmediate();
      budget = new Budget(readAtOnce);
    }
    const context = await toContext(row, layouts);
    const { current, runtime } = context;
    budget.spent += 1 + (current && runtime ? evidenceCost(current.profile, runtime) : 0);
    contexts.push(context);
  }
  return contexts;
}

async function toContext(row: DeviceRow, layouts: Layouts): Promise<DeviceContext> {
  const current = profileOf(row.current_profile, row.current_content, layouts);
  const pending = profileOf(row.pending_profile, row.pending_content, layouts);
  const stood = current && row.runtime ? await toEvidence(current, row, row.runtime) : null;
  return {
    device: { deviceId: row.device_id, uuid: row.uuid, accountId: row.account_id },
    version: row.version,
    senses: sensesOf(row.configuration),
    place: { puId: row.pu_id, stId: row.st_id },
    placeTs: row.state_at,
    reported: toReported(row),
    answersProfiles: row.answers_profiles,
    current: current ? { profile: current, engine: row.engine ?? 'service' } : null,
    pending: pending ?? null,
    pendingTs: pending ? row.pending_since : null,
    runtime: stood?.runtime ?? null,
    evidenceLog: stood?.evidenceLog ?? null,
    dueTs: row.due_at,
    earliestDue: null,
    watched: watchedBy(current, pending),
    seen: Pages.of<Newest>([]),
    clocks: null,
    remarked: null,
    waitingSenses: null,
    recentRejections: null,
  };
}

/** How evidence is stored, with what it comes to. */
async function toEvidence(
  profile: Profile,
  { version, evidence_log }: DeviceRow,
  stored: StoredRuntime,
): Promise<{ runtime: Runtime; evidenceLog: EvidenceLog | null }> {
  const rows = evidence_log ?? [];
  const runtime = await replay(profile, stored, rows, setImmediate);
  const added = addedTo(stored, rows).reduce((sum, row) => sum + row.measurements.length, 0);
  const read = { version, base: stored.log ?? null, added, hasRows: rows.length > 0 };
  return { runtime, evidenceLog: logOfRead(profile, runtime, read) };
}

function watchedBy(current?: Profile, pending?: Profile): ReadonlyMap<string, number> {
  if (!current || !pending) return (current ?? pending)?.senses ?? none;
  const both = new Set([...current.senses.keys(), ...pending.senses.keys()]);
  return numbered(both);
}

function wantedOf({ device: { deviceId }, watched }: DeviceContext) {
  return [...watched.keys()].map((sId) => ({ deviceId, sId }));
}

function toReported(row: DeviceRow): Reported | null {
  const { reported_at: ts, reported_pu_id: puId, reported_st_id: stId } = row;
  return ts === null || puId === null || stId === null ? null : { ts, puId, stId };
}
