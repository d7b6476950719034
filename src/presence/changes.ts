import type { PresentDevice } from '../bus/bus.ts';

/** Devices of one account that are named in one turn; of more readers are told to ask again. */
export const maxNamed = 100;

/** Of a turn: devices as they are now, or why a reader is to ask again. */
export type PresenceTurn = { devices: PresentDevice[] } | { reason: 'many' | 'missed' };

/** What changed since the last turn: of a device that came and left meanwhile, how it stands now. */
export class PresenceChanges {
  #devices = new Map<number, PresentDevice>();
  #reason: 'many' | 'missed' | null = null;

  get isEmpty(): boolean {
    return this.#reason === null && this.#devices.size === 0;
  }

  add(devices: readonly PresentDevice[]): void {
    for (const device of devices) this.#devices.set(device.deviceId, device);
    if (this.#devices.size > maxNamed) this.addAll('many');
  }

  /** Any of them may have changed. What was missed counts for more than that there were many. */
  addAll(reason: 'many' | 'missed'): void {
    this.#reason = this.#reason === 'missed' ? 'missed' : reason;
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
