import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { generate, parser } from 'mqtt-packet';
import type { IConnectPacket, Packet } from 'mqtt-packet';
import { startBridge } from '../../../connector/bridge/bridge.ts';
import type { Bridge } from '../../../connector/bridge/bridge.ts';
import { filterOf } from '../../../connector/bridge/client.ts';
import {
  type BridgeStatus,
  type BrokerAddress,
  createBridgeStatus,
  type LeaseTerm,
} from '../../../connector/bridge/status.ts';
import { createStore } from '../store.ts';
import { monotonicClock } from '../../../src/lib/clock.ts';

type Line = {
  level: 'info' | 'warn' | 'error';
  message: string;
  reason?: string;
  code?: string | number;
};

/** A log that keeps its lines. */
function journal() {
  const lines: Line[] = [];
  const write = (level: Line['level']) => (context: object, message: string) =>
    void lines.push({ ...context, level, message });
  return { lines, log: { info: write('info'), warn: write('warn'), error: write('error') } };
}

export type TestBridge = {
  status: BridgeStatus;
  lines: Line[];
  start(turn?: LeaseTerm): Bridge;
  close(): Promise<void>;
};

/** A bridge of connector `x` that stores nothing. `start` it as often as needed. */
export function prepareBridge(
  address: Partial<BrokerAddress> & { url: string },
  settleMs?: number,
): TestBridge {
  const broker = { clientId: 'test', shareName: null, ...address };
  const { lines, log } = journal();
  const status = createBridgeStatus({
    name: { ...broker, connectorName: 'x', filter: filterOf(broker) },
    hasLease: broker.shareName === null,
    log,
    clock: Date.now,
    ...(settleMs === undefined ? {} : { settleMs }),
  });
  const { ports } = createStore();
  const bridges: Bridge[] = [];
  return {
    status,
    lines,
    start(turn) {
      const limits = { rejectionsPerMessage: 10, maxPacketBytes: 65_536 };
      const options = { broker, ...limits, log, now: monotonicClock, status };
      const bridge = startBridge(options, { ...ports, identify: async () => null }, turn);
      bridges.push(bridge);
      return bridge;
    },
    async close() {
      await Promise.all(bridges.map((bridge) => bridge.close({ drainMs: 0 })));
      status.end();
    },
  };
}

/** Speaks MQTT 5 as a test tells it to, for answers that no real broker here can be made to give. */
export type PacketBroker = { url: string; connects: IConnectPacket[]; close(): Promise<void> };

export async function startPacketBroker(
  answer: (packet: Packet, send: (packet: Packet) => void, socket: Socket) => void,
): Promise<PacketBroker> {
  const connects: IConnectPacket[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    const packets = parser({ protocolVersion: 5 });
    const send = (packet: Packet) => socket.write(generate(packet, { protocolVersion: 5 }));
    packets.on('packet', (packet) => {
      if (packet.cmd === 'connect') connects.push(packet);
      answer(packet, send, socket);
    });
    // A client of another test, whose server had this port before, does not speak MQTT.
    packets.on('error', () => socket.destroy());
    socket.on('data', (chunk) => packets.parse(chunk)).on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connects,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
