import type { Bus } from '../../bus/bus.ts';
import type { NewEvent } from '../../contract/event.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { Log } from '../../log/logger.ts';
import type { IngestObserver } from './observer.ts';
import type { Plan } from './plan-batch.ts';

export type AfterCommitDeps = {
  bus: Bus;
  log: Log;
  /** Sends a device the profile that waits for its answer. */
  handOver: (device: DeviceIdentity) => Promise<void>;
  observe?: IngestObserver | undefined;
};

/** What follows a commit and is no row: messages to devices, and the news of what was recorded. */
export function createAfterCommit({ bus, log, handOver, observe }: AfterCommitDeps) {
  const logHandOver = (err: unknown) =>
    log.warn(
      { event: 'profile.not-handed-over', err },
      'A profile could not be sent to its device; it is sent when the device subscribes.',
    );

  return ({ rows }: Plan, recorded: NewEvent[]): void => {
    observe?.stored(rows.measurements.length);
    for (const { reason, more } of rows.rejections) observe?.rejected(reason, more ?? 1);
    for (const effect of rows.effects) {
      if (effect.kind === 'down') bus.publish('down', effect);
      else void handOver(effect.device).catch(logHandOver);
    }
    if (recorded.length === 0) return;
    const accountIds = [...new Set(recorded.map(({ accountId }) => accountId))];
    const deviceIds = [...new Set(recorded.map(({ deviceId }) => deviceId))];
    bus.publish('events', { accountIds, deviceIds });
  };
}
