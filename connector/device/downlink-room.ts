import { ByteRoom, type Reservation } from '../../src/lib/byte-room.ts';
import type { DeviceIdentity, Downlink } from '../../src/contract/uplink.ts';

/** What a message takes beside its bytes. */
export const overheadBytes = 512;

/** Before it is read nobody knows how much there is for a device: mostly little, at most about this part. */
const loadsAtOnce = 32;

/** Devices that wait until there is room to read for them; one more is looked at again a little later. */
const maxWaiting = 20_000;

/** Room for what goes down to devices; an account may take a quarter. */
export function createDownlinkRoom(maxBytes: number): ByteRoom {
  return new ByteRoom({ maxBytes, share: 1 / 4, maxWaiting, maxWaitingOfKey: maxWaiting });
}

/** Waits for room to read what is due to a device. Null where too many wait. */
export async function enterToLoad(
  room: ByteRoom,
  device: DeviceIdentity,
): Promise<Reservation | null> {
  const place = room.enter(keyOf(device), room.maxBytes / loadsAtOnce);
  await place?.entered;
  return place;
}

/** Null where there is no room at once. */
export function enterNow(
  room: ByteRoom,
  device: DeviceIdentity,
  bytes: number,
): Reservation | null {
  const place = room.enter(keyOf(device), bytes);
  if (place?.isIn) return place;
  place?.leave();
  return null;
}

export function encode({ payload }: Downlink): Buffer {
  return Buffer.from(JSON.stringify(payload));
}

const keyOf = ({ accountId }: DeviceIdentity) => String(accountId);
