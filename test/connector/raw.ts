import type { Socket } from 'node:net';
import { generate, parser, type Packet } from 'mqtt-packet';
import { until, wire, type World } from './harness.ts';

/** Speaks MQTT packet by packet, without the restraint of a client library. */
export class RawClient {
  readonly socket: Socket;
  readonly received: Packet[] = [];
  isClosed = false;

  /** The version it speaks; a CONNECT that it sends may change it. */
  version: number;

  constructor(socket: Socket, version: number = wire.version) {
    this.socket = socket;
    this.version = version;
    const packets = parser({ protocolVersion: version });
    packets.on('packet', (packet) => this.received.push(inWordsOf3(packet)));
    packets.on('error', () => {});
    socket.on('data', (chunk) => packets.parse(chunk));
    socket.on('close', () => (this.isClosed = true));
  }

  send(...packets: Packet[]): void {
    const options = { protocolVersion: this.version };
    this.socket.write(Buffer.concat(packets.map((packet) => generate(packet, options))));
  }

  of<C extends Packet['cmd']>(cmd: C): Extract<Packet, { cmd: C }>[] {
    return this.received.filter((packet) => packet.cmd === cmd) as Extract<Packet, { cmd: C }>[];
  }

  /** Waits until `count` packets of this kind have arrived. */
  async expect<C extends Packet['cmd']>(cmd: C, count = 1): Promise<Extract<Packet, { cmd: C }>[]> {
    await until(() => this.of(cmd).length >= count || this.isClosed, `${count} ${cmd}`);
    return this.of(cmd);
  }

  ended(): Promise<void> {
    return until(() => this.isClosed, 'the end of a connection');
  }
}

/** The return codes of MQTT 3.1.1 that correspond to reason codes, or the nearest. */
const returnCodes: Record<number, number> = {
  0: 0,
  0x84: 1,
  0x85: 2,
  0x87: 5,
  0x88: 3,
  0x90: 5,
  0x97: 3,
  0x9f: 3,
};

/** Lets one test cover both versions. `reasonCode` and `codes` have what MQTT 5 says exactly. */
function inWordsOf3(packet: Packet): Packet {
  if (packet.cmd === 'connack' && packet.reasonCode !== undefined)
    packet.returnCode = returnCodes[packet.reasonCode];
  if (packet.cmd === 'suback') {
    const { granted } = packet;
    const inWords = granted.map((code) => (Number(code) < 128 ? code : 128));
    return { ...packet, granted: inWords as number[], codes: granted } as Packet;
  }
  return packet;
}

/** In MQTT 5 a message without any good item is acknowledged with a reason code, which clients throw. */
export function refusedIn5(error: unknown): void {
  if (wire.version === 4) throw error;
}

export type Connect = Extract<Packet, { cmd: 'connect' }>;

export function connectPacket(world: World, more: Partial<Connect> = {}): Connect {
  return {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: wire.version,
    clean: true,
    clientId: 'raw',
    keepalive: 0,
    username: world.device.uuid,
    password: Buffer.from(world.device.token),
    ...more,
  };
}

export function publishPacket(
  topic: string,
  payload: unknown,
  more: { qos?: 0 | 1 | 2; messageId?: number; dup?: boolean; retain?: boolean } = {},
): Packet {
  return {
    cmd: 'publish',
    topic,
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    qos: 0,
    dup: false,
    retain: false,
    ...more,
  };
}

/** A bare connection that is logged in. */
export async function enter(world: World, more: Partial<Connect> = {}): Promise<RawClient> {
  const raw = await dial(world, more.protocolVersion);
  raw.send(connectPacket(world, more));
  await raw.expect('connack');
  return raw;
}

/** The reason code with which the service ends a connection of MQTT 5. */
export async function goodbye(raw: RawClient): Promise<number | undefined> {
  await raw.ended();
  return raw.of('disconnect')[0]?.reasonCode;
}

export async function dial(world: World, version?: number): Promise<RawClient> {
  return new RawClient(await world.dial(), version);
}

/** Makes a few round trips of another client. By then the connector has done and sent whatever it had to. */
export async function moments(world: World): Promise<void> {
  const { uuid, token } = world.store.addDevice(999);
  const password = Buffer.from(token);
  for (let count = 0; count < 3; count++) {
    const other = await enter(world, { username: uuid, password, clientId: '' });
    other.socket.destroy();
  }
}
