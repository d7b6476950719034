import type { PresentDevice } from '../bus/bus.ts';

/** Devices of one account that are named in one turn; of more readers are told to ask again. */
export const maxNamed = 100;

/** Of a turn: devices as they are now, or why a reader is to ask again. */
export type PresenceTurn = { devices: PresentDevice[] } | { reason: AskAgain };

/** Why any device may have changed; of several the last of them is told. */
const reasons = ['changed', 'many', 'missed'] as const;
export type AskAgain = (typeof reasons)[number];

/** What changed since the last turn: of a device that came and left meanwhile, how it stands now. */
export class PresenceChanges {
  #devices = new Map<number, PresentDevice>();
  #reason: AskAgain | null = null;

  get isEmpty(): boolean {
    return this.#reason === null && this.#devices.size === 0;
  }

  add(devices: readonly PresentDevice[]): void {
    for (const device of devices) this.#devices.set(device.deviceId, device);
    if (this.#devices.size > maxNamed) this.addAll('many');
  }

  /** Any of them may have changed. */
  addAll(reason: AskAgain): void {
    const before = this.#reason;
    const isMore = before === null || reasons.indexOf(reason) > reasons.indexOf(before);
    if (isMore) this.#reason = reason;
    this.#devices.clear();
  }

  /** What there is; nothing is left. */
  take(): PresenceTurn {
    const turn: PresenceTurn =
      this.#reason === null ? { devices: [...this.#devices.values()] } : { reason: this.#reason };
    this.#reason = null;
    this.#devices = new Map();
    return turn;
  }
}
