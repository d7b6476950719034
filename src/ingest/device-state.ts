import { setImmediate } from 'node:timers/promises';
import { sensesOf } from '../contract/configuration.ts';
import type { Sql } from '../db/sql.ts';
import { compileProfile, numbered, type Profile } from '../engine/compile.ts';
import { CowArray, type Newest } from '../engine/last-seen.ts';
import { addedTo, replay, type StoredRuntime } from '../engine/runtime-codec.ts';
import type { Runtime } from '../engine/runtime.ts';
import { findNewestArrived } from '../measurements/store.ts';
import type { DeviceQueue } from './queue.ts';
import { nextArrival, storedArrival } from './rules/arrival.ts';
import { logOfRead } from './rules/evidence-log.ts';
import {
  Budget,
  type DeviceState,
  evidenceBytes,
  evidenceCost,
  type EvidenceLog,
  type Reported,
} from './rules/model.ts';
import { aheadMs, type Watermark } from './rules/watermark.ts';
import { beginClocks, clocksOf, type StoredClocks } from './save-states.ts';
import {
  claimDueStates,
  claimStates,
  type DeviceRow,
  type DeviceSize,
  listContents,
  listDeviceStates,
  listSizes,
} from './write.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** How much of what was read is processed without a pause: `Budget`. */
const readAtOnce = 1_000;

const none: ReadonlyMap<string, number> = new Map();

/** For devices whose alarms wait for a fresh measurement: of which senses. */
export type ListWaitingSenses = (
  tx: Sql,
  deviceIds: number[],
) => Promise<ReadonlyMap<number, ReadonlySet<string>>>;

const noneWait: ListWaitingSenses = async () => new Map();

/** What was read, by device. `left`: queues that there was no room for. */
type Loaded = {
  deviceStates: ReadonlyMap<number, DeviceState>;
  left: ReadonlySet<DeviceQueue>;
};

/**
 * `ticked`: those of the queues that have only ticks, with the time of the last one; absent: none. `arrived`: when the
 * first message or tick of each arrived, ms; absent: no stored value counts as ahead.
 */
export type ContextLoader = (
  tx: Sql,
  queues: DeviceQueue[],
  ticked?: ReadonlyMap<DeviceQueue, number>,
  arrived?: ReadonlyMap<DeviceQueue, number>,
) => Promise<Loaded>;

/**
 * Reads device states, and claims devices with a profile for the transaction. If another process has a message of such
 * a device under way, this waits for it, so that the newest value in the history is really the newest. A removed device
 * has no state. Nor has one with only ticks that is no longer due or that another process has. Reads as many devices as
 * `remembered` has room for at once; at least one. `nowTs`: the service's time now (`ApplyLimits`).
 */
export function createContextLoader(
  remembered: ContextCache,
  listWaitingSenses: ListWaitingSenses = noneWait,
  nowTs?: Clock,
): ContextLoader {
  return async (tx, queues, ticked = new Map(), arrived = new Map()) => {
    const left = await pickLeft(tx, queues, remembered);
    const taken = left.size > 0 ? queues.filter((queue) => !left.has(queue)) : queues;
    const rows = await claimAndList(tx, taken, ticked);
    const layouts = await loadContents(tx, rows, remembered);
    const read = await toDeviceStates(rows, layouts);
    const { newest, arrived: arrivedOf } = await findNewestArrived(tx, read.flatMap(wantedOf));
    const waiting = await listWaitingSenses(
      tx,
      rows.map(({ device_id }) => device_id),
    );
    const storedClocks = new Map(rows.map(({ device_id, clocks }) => [device_id, clocks]));
    const arrivals = new Map([...arrived].map(([{ device }, ts]) => [device.deviceId, ts]));
    const deviceStates = new Map<number, DeviceState>();
    for (const deviceState of read) {
      const { deviceId } = deviceState.device;
      const waitingSenses = waiting.get(deviceId) ?? null;
      const clocksBefore = storedClocks.get(deviceId) ?? null;
      const arrival = storedArrival(
        latestOf(deviceState.arrival?.ts, arrivedOf.get(deviceId), arrivedOfClocks(clocksBefore)),
      );
      // A message that was overtaken is evaluated as of what overtook it.
      const sentTs = arrivals.get(deviceId) ?? Infinity;
      const untilTs = nextArrival(arrival, sentTs, 1, nowTs).ts + aheadMs;
      const known = {
        stored: clocksBefore,
        newest: newest.get(deviceId) ?? {},
        untilTs,
      };
      const stored = await beginClocks(tx, deviceState, known);
      const clocks = clocksOf(deviceState, stored, known.newest);
      deviceStates.set(deviceId, { ...deviceState, ...clocks, arrival, waitingSenses });
    }
    return { deviceStates, left };
  };
}

function latestOf(...arrivals: (number | undefined)[]): number | null {
  const known = arrivals.filter((ts) => ts !== undefined);
  return known.length > 0 ? Math.max(...known) : null;
}

/** The latest arrival of what these watermarks were written with, ms. */
function arrivedOfClocks(clocks: StoredClocks | null): number | undefined {
  const states = Object.values(clocks ?? {}).map((state) => state as Partial<Watermark>);
  return latestOf(...states.map(({ arrivedTs }) => arrivedTs)) ?? undefined;
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
    due.length > 0 ? claimDueStates(tx, idsOf(due), Math.max(...ticked.values())) : [],
    sent.length > 0 && claimStates(tx, idsOf(sent)),
    listDeviceStates(tx, idsOf(queues)),
  ]);
  if (claimed.length === due.length) return rows;
  const left = new Set(idsOf(due));
  for (const deviceId of claimed) left.delete(deviceId);
  return rows.filter(({ device_id }) => !left.has(device_id));
}

/** Yields to the event loop now and then: evidence can be long, and there can be many devices. */
async function toDeviceStates(rows: DeviceRow[], layouts: Layouts): Promise<DeviceState[]> {
  const deviceStates: DeviceState[] = [];
  let budget = new Budget(readAtOnce);
  for (const row of rows) {
    if (budget.isSpent) {
      await setImmediate();
      budget = new Budget(readAtOnce);
    }
    const deviceState = await toDeviceState(row, layouts);
    const { current, runtime } = deviceState;
    budget.spent += 1 + (current && runtime ? evidenceCost(current.profile, runtime) : 0);
    deviceStates.push(deviceState);
  }
  return deviceStates;
}

async function toDeviceState(row: DeviceRow, layouts: Layouts): Promise<DeviceState> {
  const current = profileOf(row.current_profile, row.current_content, layouts);
  const pending = profileOf(row.pending_profile, row.pending_content, layouts);
  const stood = current && row.runtime ? await toEvidence(current, row, row.runtime) : null;
  return {
    device: { deviceId: row.device_id, uuid: row.uuid, accountId: row.account_id },
    version: row.version,
    senses: sensesOf(row.configuration),
    arrival: storedArrival(row.arrived_at),
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
    seen: CowArray.of<Newest>([]),
    clocks: null,
    remarked: null,
    given: toGiven(row),
    lateHour: null,
    waitingSenses: null,
    recentRejections: null,
  };
}

function toGiven({ basis, noted, current_profile, pending_profile }: DeviceRow) {
  // Nothing of a device that never had a profile is evaluated, so there is nothing to note.
  const isKept = noted !== null || current_profile !== null || pending_profile !== null;
  return { basis, isNoted: !isKept || noted === basis, isKept };
}

/** Decodes stored evidence, and notes how it is stored. */
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

function wantedOf({ device: { deviceId }, watched }: DeviceState) {
  return [...watched.keys()].map((sId) => ({ deviceId, sId }));
}

function toReported(row: DeviceRow): Reported | null {
  const { reported_at: ts, reported_pu_id: puId, reported_st_id: stId } = row;
  return ts === null || puId === null || stId === null ? null : { ts, puId, stId };
}

/** Compiled contents of profiles, by content id. */
type Layouts = ReadonlyMap<number, Content['layout']>;

/** The queues that one transaction has no room to read. The first one always has room. */
async function pickLeft(
  tx: Sql,
  queues: DeviceQueue[],
  remembered: ContextCache,
): Promise<ReadonlySet<DeviceQueue>> {
  const left = new Set<DeviceQueue>();
  if (queues.length < 2) return left;
  const byDevice = new Map(queues.map((queue) => [queue.device.deviceId, queue]));
  const counted = new Set<number>();
  let bytes = 0;
  for (const size of await listSizes(tx, [...byDevice.keys()])) {
    const queue = byDevice.get(size.device_id);
    if (!queue) continue;
    const more = size.bytes + missingBytes(size, counted, remembered);
    if (bytes > 0 && bytes + more > remembered.maxReadBytes) left.add(queue);
    else {
      bytes += more;
      for (const { id } of size.contents) counted.add(id);
    }
  }
  return left;
}

function missingBytes(size: DeviceSize, counted: Set<number>, remembered: ContextCache): number {
  const isMissing = ({ id }: { id: number }) =>
    !counted.has(id) && !remembered.findContent(size.account_id, id);
  return size.contents.filter(isMissing).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The compiled contents that the devices need, copied at once: the cache may drop them during later reads. */
async function loadContents(
  tx: Sql,
  rows: DeviceRow[],
  remembered: ContextCache,
): Promise<Layouts> {
  const layouts = new Map<number, Content['layout']>();
  const missing = new Set<number>();
  for (const { account_id: accountId, current_content, pending_content } of rows) {
    for (const id of [current_content, pending_content]) {
      if (id === null) continue;
      const layout = remembered.findContent(accountId, id);
      if (layout) layouts.set(id, layout);
      else missing.add(id);
    }
  }
  if (missing.size === 0) return layouts;
  for (const { id, account_id: accountId, bytes, purposes } of await listContents(tx, [
    ...missing,
  ])) {
    const { pId: _none, ...layout } = compileProfile('', purposes);
    layouts.set(id, layout);
    remembered.addContent(accountId, id, layout, bytes);
    if (bytes > pauseBytes) await setImmediate();
  }
  return layouts;
}

/** Compiling this much takes some milliseconds, so it is followed by a pause. */
const pauseBytes = 65_536;

function profileOf(
  pId: string | null,
  contentId: number | null,
  layouts: Layouts,
): Profile | undefined {
  const layout = contentId === null ? undefined : layouts.get(contentId);
  return pId !== null && contentId !== null && layout ? { pId, contentId, ...layout } : undefined;
}

/** A compiled profile without its identifier. An account's profiles with the same content share it. */
type Content = {
  id: number;
  layout: Omit<Profile, 'pId' | 'contentId'>;
  bytes: number;
  /** How many remembered devices use it. */
  users: number;
};

/** A remembered device. `used`: when it was last used, as a counter. */
type CachedDevice = {
  queue: DeviceQueue;
  deviceState: DeviceState;
  arrivals: number;
  bytes: number;
  contents: Content[];
  used: number;
};

/** What is remembered of one account's devices. */
class AccountCache {
  bytes = 0;
  readonly #clock: Clock;
  #lookAgainAt = 0;
  readonly #contents = new Map<number, Content>();
  readonly #ids = new Map<unknown, number>();
  readonly #kept = new Map<number, CachedDevice>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get devices(): number {
    return this.#kept.size;
  }

  find(contentId: number): Content['layout'] | undefined {
    return this.#contents.get(contentId)?.layout;
  }

  add(content: Content): void {
    this.#contents.set(content.id, content);
    this.#ids.set(content.layout.purposes, content.id);
    this.bytes += content.bytes;
  }

  /** Marks the device as used. False if it may take another amount of memory than before; usually it does not. */
  touch(queue: DeviceQueue, deviceState: DeviceState, used: number): boolean {
    const kept = this.#kept.get(queue.device.deviceId);
    if (kept?.queue !== queue || (queue.lastArrival?.size ?? 0) > kept.arrivals) return false;
    const before = kept.deviceState;
    if (before.place !== deviceState.place || before.senses !== deviceState.senses) return false;
    if (before.current !== deviceState.current || before.pending !== deviceState.pending)
      return false;
    kept.deviceState = deviceState;
    kept.used = used;
    return true;
  }

  /** `bytes`: what it takes besides its profiles. */
  keep(queue: DeviceQueue, deviceState: DeviceState, bytes: number, used: number): void {
    const { deviceId } = queue.device;
    const profiles = [deviceState.current?.profile, deviceState.pending];
    const contents = profiles.flatMap((profile) => this.#contentOf(profile) ?? []);
    for (const content of contents) content.users += 1;
    this.#forget(deviceId);
    const arrivals = queue.lastArrival?.size ?? 0;
    this.#kept.set(deviceId, { queue, deviceState, arrivals, bytes, contents, used });
    this.bytes += bytes;
  }

  /** Shrinks to `most` bytes. If devices of a batch under way prevent that, it waits until more has been added. */
  shrinkWithin(most: number): void {
    if (this.bytes <= Math.max(most, this.#lookAgainAt)) return;
    this.shrink(most * 0.9);
    this.#lookAgainAt = this.bytes > most ? this.bytes * 1.1 : 0;
  }

  /** Forgets the least recently used devices until `target` bytes are left. Spares devices of a batch under way. */
  shrink(target: number): void {
    for (const content of this.#contents.values()) this.#dropUnused(content);
    if (this.bytes <= target) return;
    for (const [deviceId, { queue, contents }] of [...this.#kept].toSorted(leastUsedFirst)) {
      if (this.bytes <= target) return;
      if (queue.busy) continue;
      queue.deviceState = null;
      if (!forgetArrivals(queue, this.#clock())) continue;
      this.#forget(deviceId);
      for (const content of contents) this.#dropUnused(content);
    }
  }

  #contentOf(profile: Profile | null | undefined): Content | undefined {
    const id = this.#ids.get(profile?.purposes);
    return id === undefined ? undefined : this.#contents.get(id);
  }

  #forget(deviceId: number): void {
    const kept = this.#kept.get(deviceId);
    if (!kept) return;
    this.#kept.delete(deviceId);
    this.bytes -= kept.bytes;
    for (const content of kept.contents) content.users -= 1;
  }

  #dropUnused({ id, users, bytes, layout }: Content): void {
    if (users > 0 || !this.#contents.delete(id)) return;
    this.#ids.delete(layout.purposes);
    this.bytes -= bytes;
  }
}

function leastUsedFirst([, a]: [number, CachedDevice], [, b]: [number, CachedDevice]): number {
  return a.used - b.used;
}

/** Forgets the times given to measurements without one, unless some are so recent that they are still needed. */
function forgetArrivals(queue: DeviceQueue, nowTs: WallMs): boolean {
  for (const ts of queue.lastArrival?.values() ?? []) if (ts >= nowTs - 1_000) return false;
  queue.lastArrival = null;
  return true;
}

/** A compiled profile takes this many times its bytes as JSON; measured with the shape that takes most. */
const compiledFactor = 13;
const compiledOverhead = 2_000;

/** What is remembered of a device besides its profiles, evidence and senses. */
const deviceOverhead = 1_500;
const senseBytes = 160;
const newestBytes = 200;
const arrivalBytes = 320;

/**
 * An account may take this part of the total, and this many bytes more for each of its devices. So many plain devices
 * of one account stay remembered, and large profiles or evidence of one account do not fill the memory.
 */
const accountShare = 1 / 8;
const plainDeviceBytes = 4_096;

/**
 * Counts, in estimated bytes, what ingest remembers between messages: profiles, each content once, and the states of
 * devices. An account beyond its share, or beyond `maxBytes` the largest account, forgets what it did not use for
 * longest. A forgotten device is read again with its next message.
 */
export class ContextCache {
  readonly #maxBytes: number;
  readonly #clock: Clock;
  readonly #holdings = new Map<number, AccountCache>();
  #bytes = 0;
  #uses = 0;

  constructor(maxBytes: number, clock: Clock) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many stored bytes one transaction may read. What it reads is remembered, or about to be. */
  get maxReadBytes(): number {
    return this.#maxBytes / 64;
  }

  findContent(accountId: number, contentId: number): Content['layout'] | undefined {
    return this.#holdings.get(accountId)?.find(contentId);
  }

  /** `jsonBytes`: the length of its purposes as stored. */
  addContent(accountId: number, id: number, layout: Content['layout'], jsonBytes: number): void {
    if (this.findContent(accountId, id)) return;
    const bytes = compiledOverhead + compiledFactor * jsonBytes;
    this.#change(accountId, (holding) => holding.add({ id, layout, bytes, users: 0 }));
  }

  /** The queue was used, and may have another state than before. */
  note(queue: DeviceQueue): void {
    const { deviceState } = queue;
    if (!deviceState) return;
    const used = (this.#uses += 1);
    const { accountId } = deviceState.device;
    if (this.#holdings.get(accountId)?.touch(queue, deviceState, used)) return;
    const bytes = bytesOf(deviceState) + arrivalBytes * (queue.lastArrival?.size ?? 0);
    this.#change(accountId, (holding) => {
      holding.keep(queue, deviceState, bytes, used);
      holding.shrinkWithin(this.#maxBytes * accountShare + plainDeviceBytes * holding.devices);
    });
    if (this.#bytes > this.#maxBytes) this.shrink(this.#maxBytes * 0.9);
  }

  /** Forgets until `target` bytes are left, or only what a batch under way needs. */
  shrink(target = 0): void {
    const largestFirst = () => [...this.#holdings].toSorted(([, a], [, b]) => b.bytes - a.bytes);
    for (let round = 0; round < maxRounds && this.#bytes > target; round += 1) {
      const [largest, next] = largestFirst();
      if (!largest) return;
      const fair = Math.min(next?.[1].bytes ?? 0, largest[1].bytes / 2);
      const own = Math.max(0, largest[1].bytes - (this.#bytes - target));
      const before = this.#bytes;
      this.#change(largest[0], (holding) => holding.shrink(Math.max(fair, own)));
      if (this.#bytes === before) break;
    }
    // If the largest account has nothing left to give because its batch is under way, the others give.
    for (const [accountId, { bytes }] of largestFirst()) {
      const excess = this.#bytes - target;
      if (excess <= 0) return;
      this.#change(accountId, (holding) => holding.shrink(Math.max(0, bytes - excess)));
    }
  }

  #change(accountId: number, work: (holding: AccountCache) => void): void {
    const holding = this.#holdings.get(accountId) ?? new AccountCache(this.#clock);
    const before = holding.bytes;
    work(holding);
    this.#bytes += holding.bytes - before;
    if (holding.bytes > 0) this.#holdings.set(accountId, holding);
    else this.#holdings.delete(accountId);
  }
}

const maxRounds = 100;

function bytesOf({ senses, watched, current, pending, runtime }: DeviceState): number {
  const evidence = current && runtime ? evidenceBytes(current.profile, runtime) : 0;
  const own = isOwn(watched, current?.profile, pending) ? senseBytes : 0;
  return deviceOverhead + senses.size * senseBytes + watched.size * (newestBytes + own) + evidence;
}

/** Whether the senses are numbered for this device alone, as in a device with two profiles. */
function isOwn(watched: DeviceState['watched'], ...profiles: (Profile | null | undefined)[]) {
  return profiles.every((profile) => profile?.senses !== watched);
}
