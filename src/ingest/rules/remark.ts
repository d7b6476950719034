import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { Changes } from './changes.ts';
import type { MessageScope } from './scope.ts';
import { ofDevice, type Remarked } from './sense-clock.ts';

/** Who is told. */
export type RemarkedDevice = Pick<DeviceIdentity, 'deviceId' | 'uuid'>;
type Saying = Pick<MessageScope, 'topic' | 'arrivedTs'> & {
  rows: Pick<Changes, 'clocks' | 'effects'>;
};

type Remark = { reason: 'clock-ahead' | 'clock-back'; message: string; path: string };

const remarkEveryMs = 3_600_000;

const memberOf = { 'clock-ahead': 'aheadTs', 'clock-back': 'backTs' } as const;

/** Tells the device of its clock, at most hourly: nothing is rejected. Gives when it was told of what. */
export function remark(
  { device: { deviceId, uuid } }: { device: RemarkedDevice },
  before: Remarked | null,
  { reason, message, path }: Remark,
  { rows, arrivedTs, topic }: Saying,
): Remarked | null {
  const member = memberOf[reason];
  const last = before?.[member] ?? null;
  if (last !== null && arrivedTs < last + remarkEveryMs) return before;
  const payload = { topic, reason, message, path, ts: arrivedTs };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
  const remarked: Remarked = { aheadTs: null, backTs: null, ...before, [member]: arrivedTs };
  rows.clocks.set(`${deviceId} `, { deviceId, sId: ofDevice, state: remarked });
  return remarked;
}
