import { encodeConnect } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 3_000;

/** A third says nothing, a third sends CONNECT byte by byte, a third is let in and stays. */
export const connections_: NoisyKind = {
  name: 'connections',
  says: '3,000 MQTT connections: silent, byte by byte, and let in; again when they are closed',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 250);
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(enemy.mqttPort).resume();
        enemy.tally.count('opened');
        const { uuid = '', token = '' } = devices[n % devices.length] ?? {};
        const packet = encodeConnect({
          clientId: `${uuid}-${n}`,
          username: uuid,
          password: token,
          keepaliveSeconds: 60,
        });
        if (n % 3 === 1) void trickle(socket, packet, signal);
        if (n % 3 === 2) socket.write(packet);
        socket.once('close', () => setTimeout(open, 100, n).unref());
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

async function trickle(
  socket: { write(bytes: Buffer): unknown; destroyed: boolean },
  packet: Buffer,
  signal: AbortSignal,
): Promise<void> {
  for (const byte of packet) {
    if (socket.destroyed || signal.aborted) return;
    socket.write(Buffer.from([byte]));
    await pause(200, signal);
  }
}
