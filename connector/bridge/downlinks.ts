import { LRUCache } from 'lru-cache';
import { downPrefix } from '../../src/contract/topic.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { createDownlinkRoom } from '../device/downlink-room.ts';
import { DownlinkQueue, type Encoded } from '../device/downlink-queue.ts';
import type { Log } from '../options.ts';
import type { BridgePorts } from './ports.ts';

export type BridgeDownlinksDeps = {
  ports: BridgePorts;
  log: Log;
  publish: (topic: string, payload: Buffer) => Promise<void>;
};

/** Devices that are remembered; one that is forgotten is known again once it is heard. */
const maxQueues = 20_000;
const maxQueued = 100;
const maxBytes = 33_554_432;
const retryMs = 1_000;

/**
 * What goes down to devices behind the broker. It does not say who is connected there: a profile or
 * a configuration is published by every bridge, and the broker knows whether anybody listens; the
 * rest by a bridge that has heard the device, which is one where the broker keeps a device to a bridge.
 */
export function startBridgeDownlinks({ ports, log, publish }: BridgeDownlinksDeps) {
  const { bus } = ports;
  const queues = new LRUCache<string, DownlinkQueue>({ max: maxQueues });
  const deps = { ports, log, maxQueued, room: createDownlinkRoom(maxBytes) };

  function queueOf(device: DeviceIdentity): DownlinkQueue {
    const known = queues.get(device.uuid);
    if (known) return known;
    const queue = new DownlinkQueue(channelTo(device), deps);
    queues.set(device.uuid, queue);
    return queue;
  }

  function channelTo(device: DeviceIdentity) {
    const prefix = downPrefix(device.uuid);
    return {
      device,
      accepts: () => true,
      async send({ topic, body }: Encoded): Promise<void> {
        try {
          await publish(prefix + topic, body);
        } catch (error) {
          queues.delete(device.uuid);
          throw error;
        }
      },
    };
  }

  async function push(uuid: string, topic: 'profile' | 'configuration'): Promise<void> {
    const device = await ports.identify(uuid);
    if (device) queueOf(device).due(topic);
  }

  const timer = setInterval(() => {
    for (const queue of queues.values()) queue.retry();
  }, retryMs);
  const ends = [
    ports.onAccountDisabled((accountId) => {
      const its = [...queues.values()].filter(({ device }) => device.accountId === accountId);
      for (const queue of its) {
        queues.delete(queue.device.uuid);
        queue.end();
      }
    }),
    bus.subscribe('device', (notice) => {
      if (!notice.push) return;
      push(notice.uuid, notice.push).catch((err: unknown) =>
        log.warn(
          { event: 'downlink.unread', err, device: notice.uuid },
          'What is due for a device could not be read.',
        ),
      );
    }),
    bus.subscribe('down', ({ uuid, message }) => queues.get(uuid)?.push(message)),
    bus.subscribe('access', ({ uuid }) => void queues.delete(uuid)),
    bus.subscribe('resync', () => {
      for (const queue of queues.values()) {
        queue.due('profile');
        queue.due('configuration');
      }
    }),
  ];

  return {
    /** The device is behind the broker: what concerns it is for this bridge. */
    heard: (device: DeviceIdentity) => void queueOf(device),
    end(): void {
      clearInterval(timer);
      for (const end of ends) end();
      for (const queue of queues.values()) queue.end();
    },
  };
}
