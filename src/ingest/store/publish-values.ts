import type { Bus, LiveDevice, LiveValue } from '../../bus/bus.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { MeasurementRow } from '../rules/measurement-row.ts';
import type { Plan } from './plan.ts';

/** To whose values anybody listens, in any process. */
export type ValueListeners = {
  isEmpty(): boolean;
  has(accountId: number): boolean;
};

/** Of one message: half a millisecond to write it, and another one to read it. */
const valuesPerMessage = 500;

/** Publishes what was committed of accounts to whose values somebody listens, in its order. */
export function publishValues(
  { works, rows }: Pick<Plan, 'works' | 'rows'>,
  listeners: ValueListeners,
  bus: Pick<Bus, 'publish'>,
): void {
  const heard = new Map<number, DeviceIdentity>();
  for (const { queue } of works)
    if (listeners.has(queue.device.accountId)) heard.set(queue.device.deviceId, queue.device);
  if (heard.size === 0) return;
  const byAccount = new Map<number, LiveDevice[]>();
  let count = 0;
  const send = (): void => {
    for (const [accountId, devices] of byAccount)
      bus.publish('measurements', { accountId, devices });
    byAccount.clear();
    count = 0;
  };
  for (const row of rows.measurements) {
    const device = heard.get(row.deviceId);
    if (!device) continue;
    valuesOf(byAccount, device).push(toLiveValue(row));
    count += 1;
    if (count === valuesPerMessage) send();
  }
  send();
}

/** Where the next value of a device goes. */
function valuesOf(
  byAccount: Map<number, LiveDevice[]>,
  { accountId, deviceId, uuid }: DeviceIdentity,
): LiveValue[] {
  const devices = byAccount.get(accountId) ?? [];
  byAccount.set(accountId, devices);
  // Rows of a device stand one behind the other.
  const last = devices.at(-1);
  if (last?.deviceId === deviceId) return last.values;
  const values: LiveValue[] = [];
  devices.push({ deviceId, uuid, values });
  return values;
}

function toLiveValue({ sId, ts, val, long }: MeasurementRow): LiveValue {
  return long === undefined ? [sId, ts, val] : [sId, ts, val, long];
}
