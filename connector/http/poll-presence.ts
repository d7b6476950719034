import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { ConnectorPorts } from '../ports.ts';

export type PollPresenceDeps = {
  ports: Pick<ConnectorPorts, 'presence'>;
  /** How long the next poll of a device that was answered may take to come, ms. */
  graceMs: number;
};

type Waiting = { identity: DeviceIdentity; polls: number; timer: NodeJS.Timeout | null };

/**
 * A device is connected while a poll of it waits, and a little longer after an answer: it reads that and asks
 * again. One whose connection ends before the answer has left.
 */
export function createPollPresence({ ports, graceMs }: PollPresenceDeps) {
  const devices = new Map<number, Waiting>();

  function leave(device: Waiting): void {
    if (device.timer) clearTimeout(device.timer);
    devices.delete(device.identity.deviceId);
    ports.presence(device.identity, 'disconnected');
  }

  return {
    began(identity: DeviceIdentity): void {
      const known = devices.get(identity.deviceId);
      if (!known) {
        devices.set(identity.deviceId, { identity, polls: 1, timer: null });
        ports.presence(identity, 'connected');
        return;
      }
      known.polls += 1;
      if (known.timer) clearTimeout(known.timer);
      known.timer = null;
    },

    /** One that began; `isAnswered`: and not left by its client. */
    ended({ deviceId }: DeviceIdentity, isAnswered: boolean): void {
      const device = devices.get(deviceId);
      if (!device) return;
      device.polls -= 1;
      if (device.polls > 0) return;
      if (!isAnswered) leave(device);
      else device.timer = setTimeout(() => leave(device), graceMs);
    },

    /** None comes again. */
    stop(): void {
      for (const device of devices.values()) if (device.timer) leave(device);
    },
  };
}
