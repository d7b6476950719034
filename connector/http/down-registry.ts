import type { Poll } from './down-poll.ts';

/** More of one device are not left waiting: a client that was cut off and comes again may seem to be two. */
const maxOfDevice = 2;

/** Who waits here, by device and by account. */
export class Polls {
  readonly all = new Set<Poll>();
  readonly #devices = new Map<string, Poll[]>();
  readonly #accounts = new Map<number, number>();

  /** Adds it; gives the one that has to make room. */
  add(poll: Poll): Poll | undefined {
    const { uuid, accountId } = poll.device;
    const own = this.#devices.get(uuid) ?? [];
    this.#devices.set(uuid, [...own, poll]);
    this.#accounts.set(accountId, this.countOf(accountId) + 1);
    this.all.add(poll);
    return own.length >= maxOfDevice ? own[0] : undefined;
  }

  remove(poll: Poll): void {
    if (!this.all.delete(poll)) return;
    const { uuid, accountId } = poll.device;
    const others = this.listOf(uuid).filter((one) => one !== poll);
    if (others.length > 0) this.#devices.set(uuid, others);
    else this.#devices.delete(uuid);
    const left = this.countOf(accountId) - 1;
    if (left > 0) this.#accounts.set(accountId, left);
    else this.#accounts.delete(accountId);
  }

  listOf(uuid: string): readonly Poll[] {
    return this.#devices.get(uuid) ?? [];
  }

  countOf(accountId: number): number {
    return this.#accounts.get(accountId) ?? 0;
  }
}
