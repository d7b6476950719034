import type { Profile } from '../../engine/compile.ts';
import { AccountCache, type Content } from './account-cache.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { DeviceQueue } from '../queue/device-queue.ts';
import { evidenceBytes } from '../rules/model.ts';

/** Compiled, a profile takes so many times its bytes as JSON; measured, of the shape that takes most. */
const compiledFactor = 13;
const compiledOverhead = 2_000;

/** What is remembered of a device beside its profiles, its evidence and its senses. */
const deviceOverhead = 1_500;
const senseBytes = 160;
const newestBytes = 200;
const arrivalBytes = 320;

/**
 * One account may take this part of all, and so many bytes more for each of its devices: many plain devices
 * of a single account stay remembered, and large profiles or evidence of one do not fill the memory.
 */
const accountShare = 1 / 8;
const plainDeviceBytes = 4_096;

/**
 * Counts, in bytes by estimate, what ingest remembers between two messages: profiles, each content once,
 * and what it knows of devices. Beyond its share an account, and beyond `maxBytes` the account that has
 * most, forgets what it did not use for longest; it is read again with the device's next message.
 */
export class ContextCache {
  readonly #maxBytes: number;
  readonly #clock: () => number;
  readonly #holdings = new Map<number, AccountCache>();
  #bytes = 0;
  #uses = 0;

  constructor(maxBytes: number, clock: () => number) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How much of what is stored one transaction may read: what it reads is remembered, or on its way there. */
  get maxReadBytes(): number {
    return this.#maxBytes / 64;
  }

  findContent(accountId: number, contentId: number): Content['layout'] | undefined {
    return this.#holdings.get(accountId)?.find(contentId);
  }

  /** `jsonBytes`: of its purposes as they are stored. */
  addContent(accountId: number, id: number, layout: Content['layout'], jsonBytes: number): void {
    if (this.findContent(accountId, id)) return;
    const bytes = compiledOverhead + compiledFactor * jsonBytes;
    this.#change(accountId, (holding) => holding.add({ id, layout, bytes, users: 0 }));
  }

  /** The queue was used, and may have another context than before. */
  note(queue: DeviceQueue): void {
    const { context } = queue;
    if (!context) return;
    const used = (this.#uses += 1);
    const { accountId } = context.device;
    if (this.#holdings.get(accountId)?.touch(queue, context, used)) return;
    const bytes = bytesOf(context) + arrivalBytes * (queue.lastArrival?.size ?? 0);
    this.#change(accountId, (holding) => {
      holding.keep(queue, context, bytes, used);
      holding.shrinkWithin(this.#maxBytes * accountShare + plainDeviceBytes * holding.devices);
    });
    if (this.#bytes > this.#maxBytes) this.shrink(this.#maxBytes * 0.9);
  }

  /** Forgets until so many bytes are left, or only what a batch under way needs. */
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
    // Where the largest has nothing to give: a batch of it is under way.
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

function bytesOf({ senses, watched, current, pending, runtime }: DeviceContext): number {
  const evidence = current && runtime ? evidenceBytes(current.profile, runtime) : 0;
  const own = isOwn(watched, current?.profile, pending) ? senseBytes : 0;
  return deviceOverhead + senses.size * senseBytes + watched.size * (newestBytes + own) + evidence;
}

/** Of a device with two profiles: senses that are numbered for it alone. */
function isOwn(watched: DeviceContext['watched'], ...profiles: (Profile | null | undefined)[]) {
  return profiles.every((profile) => profile?.senses !== watched);
}
