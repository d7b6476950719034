import { LRUCache } from 'lru-cache';
import { downPrefix } from '../../src/contract/topic.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { createDownlinkRoom } from '../device/downlink-room.ts';
import { DownlinkQueue } from '../device/downlinks.ts';
import type { Encoded } from '../device/downlink-sender.ts';
import type { Log } from '../options.ts';
import type { BridgePorts } from './ports.ts';

export type BridgeDownlinksDeps = {
  ports: BridgePorts;
  log: Log;
  publish: (topic: string, payload: Buffer) => Promise<void>;
  /** A clock that only goes forward, in milliseconds. */
  now: () => number;
};

/** Devices that are remembered; one that was evicted is added again with its next message. */
const maxQueues = 20_000;
const maxQueued = 100;
const maxBytes = 33_554_432;
const retryMs = 1_000;
/** How often kept texts are looked for while a device sends: it may have subscribed only now. */
const lookForTextsMs = 10_000;

/**
 * Downlinks to devices behind the broker, which does not say who is connected there. A profile or a
 * configuration is published by every bridge, and the broker answers whether anybody subscribes; other
 * messages are published by bridges that received something of the device.
 */
export function startBridgeDownlinks({ ports, log, publish, now }: BridgeDownlinksDeps) {
  const { bus } = ports;
  const queues = new LRUCache<string, DownlinkQueue>({ max: maxQueues });
  /** When kept texts were last looked for; it outlives a queue that ended because nobody listened. */
  const looked = new LRUCache<string, number>({ max: maxQueues });
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
        queue.due('display');
      }
    }),
  ];

  return {
    /** Something was received of the device: this bridge publishes its downlinks. */
    heard(device: DeviceIdentity): void {
      const queue = queueOf(device);
      const nowMs = now();
      if (nowMs - (looked.get(device.uuid) ?? -Infinity) < lookForTextsMs) return;
      looked.set(device.uuid, nowMs);
      queue.due('display');
    },
    end(): void {
      clearInterval(timer);
      for (const end of ends) end();
      for (const queue of queues.values()) queue.end();
    },
  };
}
