import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { Listening } from '../../engine/listening.ts';
import type { ApplyLimits } from './scope.ts';

/** When the device's connector did not listen, as if a gap that lasts ended now: nothing is due before that. */
export function listeningUntil(
  nowTs: number,
  device: DeviceIdentity,
  { listeningOf }: ApplyLimits,
): Listening | undefined {
  const listening = listeningOf?.(device);
  const last = listening?.gaps.at(-1);
  if (!listening || last?.toTs !== null) return listening;
  return { gaps: [...listening.gaps.slice(0, -1), { fromTs: last.fromTs, toTs: nowTs }] };
}
