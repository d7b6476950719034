import type { Profile } from '../../engine/compile.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { DeviceQueue } from '../queue/device-queue.ts';

/** A compiled profile without its identifier: profiles of an account that say the same have one. */
export type Content = {
  id: number;
  layout: Omit<Profile, 'pId'>;
  bytes: number;
  /** Devices that are remembered and have it. */
  users: number;
};

/** A device that is remembered; `used`: when, as a number that only grows. */
type CachedDevice = {
  queue: DeviceQueue;
  context: DeviceContext;
  arrivals: number;
  bytes: number;
  contents: Content[];
  used: number;
};

/** All that is remembered of one account's devices. */
export class AccountCache {
  bytes = 0;
  readonly #clock: () => number;
  #lookAgainAt = 0;
  readonly #contents = new Map<number, Content>();
  readonly #ids = new Map<unknown, number>();
  readonly #kept = new Map<number, CachedDevice>();

  constructor(clock: () => number) {
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

  /** Says whether the device takes as much as when it was kept: mostly it does. */
  touch(queue: DeviceQueue, context: DeviceContext, used: number): boolean {
    const kept = this.#kept.get(queue.device.deviceId);
    if (kept?.queue !== queue || (queue.lastArrival?.size ?? 0) > kept.arrivals) return false;
    const before = kept.context;
    if (before.place !== context.place || before.senses !== context.senses) return false;
    if (before.current !== context.current || before.pending !== context.pending) return false;
    kept.context = context;
    kept.used = used;
    return true;
  }

  /** `bytes`: what it takes beside its profiles. */
  keep(queue: DeviceQueue, context: DeviceContext, bytes: number, used: number): void {
    const { deviceId } = queue.device;
    const profiles = [context.current?.profile, context.pending];
    const contents = profiles.flatMap((profile) => this.#contentOf(profile) ?? []);
    for (const content of contents) content.users += 1;
    this.#forget(deviceId);
    const arrivals = queue.lastArrival?.size ?? 0;
    this.#kept.set(deviceId, { queue, context, arrivals, bytes, contents, used });
    this.bytes += bytes;
  }

  /** Has it take no more than `most`, unless devices of a batch under way do: then it looks again later. */
  shrinkWithin(most: number): void {
    if (this.bytes <= Math.max(most, this.#lookAgainAt)) return;
    this.shrink(most * 0.9);
    this.#lookAgainAt = this.bytes > most ? this.bytes * 1.1 : 0;
  }

  /** Forgets what was not used for longest, down to `target`; spares devices of a batch under way. */
  shrink(target: number): void {
    for (const content of this.#contents.values()) this.#dropUnused(content);
    if (this.bytes <= target) return;
    for (const [deviceId, { queue, contents }] of [...this.#kept].toSorted(leastUsedFirst)) {
      if (this.bytes <= target) return;
      if (queue.busy) continue;
      queue.context = null;
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

/** The times given lately to measurements that had none: those in the future are needed still. */
function forgetArrivals(queue: DeviceQueue, nowTs: number): boolean {
  for (const ts of queue.lastArrival?.values() ?? []) if (ts >= nowTs - 1_000) return false;
  queue.lastArrival = null;
  return true;
}
