import { duplexPair } from 'node:stream';
import { Aedes, type AedesOptions } from 'aedes';
import { generate, parser, type Packet } from 'mqtt-packet';
import type { DeviceAedes } from '../../connector/mqtt/aedes.ts';
import { until } from '../connector/harness.ts';

/** A device on one end of a stream, the broker on the other. */
export async function openAedes(
  options: AedesOptions = {},
  make: typeof Aedes | typeof DeviceAedes = Aedes,
  protocolVersion: 4 | 5 = 4,
) {
  const engine = new make(options);
  await engine.listen();
  const errors: Error[] = [];
  engine.on('clientError', (_client, error) => errors.push(error));
  engine.on('connectionError', (_client, error) => errors.push(error));
  const [device, stream] = duplexPair();
  device.on('error', () => undefined);
  const received: Packet[] = [];
  const packets = parser({ protocolVersion });
  packets.on('packet', (packet) => received.push(packet));
  const client = engine.handle(stream);
  return {
    engine,
    errors,
    device,
    stream,
    received,
    client,
    listen: () => void device.on('data', (chunk: Buffer) => packets.parse(chunk)),
    send: (...sent: Packet[]) =>
      device.write(Buffer.concat(sent.map((one) => generate(one, { protocolVersion })))),
    async expect(cmd: Packet['cmd'], count = 1): Promise<Packet[]> {
      const of = () => received.filter((packet) => packet.cmd === cmd);
      await until(() => of().length >= count, `${count} ${cmd}`);
      return of();
    },
    close: () => new Promise<void>((resolve) => engine.close(() => resolve())),
  };
}
