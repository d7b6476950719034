import type { Packet } from 'mqtt-packet';
import { startBridge } from '../../../connector/bridge/bridge.ts';
import { filterOf } from '../../../connector/bridge/client.ts';
import { type BridgePorts, createBridgeStatus } from '../../../connector/bridge/status.ts';
import { createStore } from '../store.ts';
import { startPacketBroker } from './harness.ts';

const log = { info() {}, warn() {}, error() {} };

/** A bridge that serves a broker, with what the broker is sent and the time that a test sets. */
export async function serveBroker(changed: Partial<BridgePorts> = {}) {
  const { store, ports } = createStore();
  const devices = [store.addDevice(1, 1), store.addDevice(2, 2)] as const;
  const time = { monotonicMs: 5 };
  /** `reasonCode`: what the broker answers to each PUBLISH, MQTT 5 section 3.4.2.1. */
  const answers = { reasonCode: 0 };
  const published: { topic: string; payload: unknown }[] = [];
  const unacknowledged = new Map<number, () => void>();
  let send = (_packet: Packet): void => undefined;
  const packets = await startPacketBroker((packet, answer) => {
    const { messageId = 0 } = packet;
    switch (packet.cmd) {
      case 'connect':
        send = answer;
        answer({ cmd: 'connack', reasonCode: 0, sessionPresent: false });
        break;
      case 'subscribe':
        answer({ cmd: 'suback', messageId, granted: [1] });
        break;
      case 'publish':
        published.push({ topic: packet.topic, payload: JSON.parse(String(packet.payload)) });
        answer({ cmd: 'puback', messageId, reasonCode: answers.reasonCode });
        break;
      case 'puback':
        unacknowledged.get(messageId)?.();
        unacknowledged.delete(messageId);
        break;
      case 'pingreq':
        answer({ cmd: 'pingresp' });
        break;
      default:
    }
  });
  const broker = { url: packets.url, clientId: 'test', shareName: null };
  const status = createBridgeStatus({
    name: { ...broker, connectorName: 'x', filter: filterOf(broker) },
    hasLease: false,
    log,
    clock: Date.now,
  });
  const now = () => time.monotonicMs;
  const limits = { rejectionsPerMessage: 10, maxPacketBytes: 65_536 };
  const identify = async (uuid: string) =>
    devices.find((device) => device.uuid === uuid)?.identity ?? null;
  const bridge = startBridge(
    { broker, ...limits, log, now, status },
    { ...ports, identify, ...changed },
  );
  await bridge.ready;
  let lastId = 0;
  return {
    store,
    devices,
    time,
    answers,
    published,
    status,
    /** A device publishes this; resolves when the bridge has acknowledged it. */
    deliver({ uuid }: { uuid: string }, topic: string, payload: object): Promise<void> {
      const messageId = (lastId += 1);
      const { promise, resolve } = Promise.withResolvers<void>();
      unacknowledged.set(messageId, resolve);
      send({
        cmd: 'publish',
        topic: `devices/${uuid}/up/${topic}`,
        payload: JSON.stringify(payload),
        qos: 1,
        messageId,
        dup: false,
        retain: false,
      });
      return promise;
    },
    async close() {
      await bridge.close({ drainMs: 0 });
      status.end();
      await packets.close();
      await store.bus.close();
    },
  };
}
