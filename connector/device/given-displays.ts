import type { Downlink } from '../../src/contract/uplink.ts';

/** More than are kept of a device. */
const remembered = 20;

/** Which kept texts a channel has had already: what is read from the database may have been pushed before. */
export class GivenDisplays {
  /** Most devices have no display. */
  #ids: number[] | null = null;

  /** Whether the message is new to the channel, which has it from now on. */
  isNew({ keptId }: Downlink): boolean {
    if (keptId === undefined) return true;
    this.#ids ??= [];
    if (this.#ids.includes(keptId)) return false;
    if (this.#ids.push(keptId) > remembered) this.#ids.shift();
    return true;
  }

  forget(): void {
    this.#ids = null;
  }
}
