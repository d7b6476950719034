import type { DeviceIdentity, Uplink } from '../../src/contract/uplink.ts';
import { type DeviceBatch, newFragment, newMessage, uplinkOfTick } from '../../src/ingest/queue.ts';
import type { Fragment } from '../../src/ingest/rules/model.ts';

export const device = (deviceId: number, accountId = 1): DeviceIdentity => ({
  deviceId,
  uuid: `00000000-0000-4000-8000-${String(deviceId).padStart(12, '0')}`,
  accountId,
});

/** A message of `count` measurements whose sender does not wait. It is withdrawn if its failure has to be noted. */
export function measurementsFragment(id: string, count: number, failures?: string[]): Fragment {
  const items = Array.from({ length: count }, (_, index) => ({
    index,
    value: { sId: '0x01', val: index, ts: index },
  }));
  const content = { kind: 'measurements' as const, items };
  const uplink: Uplink = { topic: '', excerpt: '', arrivedTs: 0, content, rejections: [] };
  const delivery = {
    isWithdrawn: failures !== undefined,
    stored() {},
    failed: () => failures?.push(id),
  };
  const message = newMessage(uplink, delivery, () => id);
  message.id = id;
  return newFragment(message, content, []);
}

/** A tick whose end nobody waits for. */
export function tickFragment(id: string): Fragment {
  const message = newMessage(
    uplinkOfTick(0),
    { isWithdrawn: false, stored() {}, failed() {} },
    () => id,
  );
  message.id = id;
  return newFragment(message, { kind: 'tick' }, []);
}

export const fragmentIds = (batch: DeviceBatch[]) =>
  batch.flatMap(({ fragments }) => fragments.map(({ message }) => message.id));
