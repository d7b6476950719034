import type { ByteRoom } from '../../src/lib/byte-room.ts';
import { createDownlinkRoom } from '../device/downlink-room.ts';
import { createRateStore, type RateStore, type SharedRates } from '../device/rates.ts';
import { createForeignTopicLog, createRefusedLoginLog } from '../device/refused-logins.ts';
import { defaultTuning, type ConnectorOptions, type Observer, type Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { type Acknowledger, createAcknowledger } from './inflight.ts';
import { createAuthenticator, type Authenticator } from './connect.ts';
import { tellOfForeignTopic, tellOfTakeovers, tellOfTooLarge } from './excess.ts';
import { createHeldMessages, type HeldMessages } from './held-messages.ts';
import { createLargePackets } from './large-packets.ts';
import { createPassOn, createPublisher, type Publisher } from './publish.ts';
import { createRateGate } from './rate-gate.ts';
import { createReader, type Reader } from './read.ts';
import { createRegistry, type Registry } from './sessions.ts';
import { createSubscriber, type Subscriber } from './subscribe.ts';
import { createUnackedRoom, type UnackedRoom } from './unacked.ts';
import { createIntake } from './intake.ts';

/** What devices' packets pass, and what is known of their connections: of one connector, and without its sockets. */
export type Parts = {
  tuning: Tuning;
  observe: Observer;
  registry: Registry;
  room: UnackedRoom;
  holding: HeldMessages;
  acknowledger: Acknowledger;
  publisher: Publisher;
  reader: Reader;
  authenticator: Authenticator;
  subscriber: Subscriber;
  /** Of what is on its way to devices. */
  downlinkRoom: ByteRoom;
};

type Common = {
  options: ConnectorOptions;
  ports: ConnectorPorts;
  tuning: Tuning;
  observe: Observer;
  registry: Registry;
};

const silent: Observer = {
  connected() {},
  refused() {},
  disconnected() {},
  message() {},
  acknowledged() {},
};

/** Makes them, and starts nothing. */
export function createParts(options: ConnectorOptions & SharedRates, ports: ConnectorPorts): Parts {
  const { limits, now } = options;
  const tuning = { ...defaultTuning, ...options.tuning };
  const observe = { ...silent, ...options.observe };
  const rateStore = options.rateStore ?? createRateStore({ ports, limits, now });
  const { maxConnectionsPerDevice } = limits;
  const connectRate = { perSecond: limits.reconnectsPerSecond, burst: limits.reconnectsBurst };
  const registry: Registry = createRegistry({
    rateStore,
    connectRate,
    maxConnectionsPerDevice,
    ports,
    now,
    onTakeovers: (identity) => tellOfTakeovers(ports, registry, identity),
  });
  const common: Common = { options, ports, tuning, observe, registry };
  return {
    tuning,
    observe,
    registry,
    ...createUplinkParts({ ...common, rateStore }),
    ...createSessionParts(common),
  };
}

/** What messages pass from the socket to ingest, and back to their acknowledgement. */
function createUplinkParts({
  options,
  ports,
  tuning,
  observe,
  rateStore,
}: Omit<Common, 'registry'> & { rateStore: RateStore }): Pick<
  Parts,
  'room' | 'holding' | 'acknowledger' | 'publisher' | 'reader'
> {
  const { limits, log, now } = options;
  const { clock, holds, presence } = ports;
  const room = createUnackedRoom(tuning.maxUnackedTotalBytes);
  const passOn = createPassOn({ ports, rateStore, limits, observe, now });
  const holding = createHeldMessages({ holds, tuning, clock, now, room, passOn });
  const acknowledger = createAcknowledger({ ports, holding, observe, log, now });
  const logForeignTopic = createForeignTopicLog(log, now);
  const publisher = createPublisher({
    clock,
    room,
    acknowledger,
    holding,
    passOn,
    tuning,
    now,
    onForeignTopic(device, message) {
      tellOfForeignTopic(ports, device, message);
      logForeignTopic(device.identity.uuid, message.topic);
    },
  });
  const reader = createReader({
    presence,
    limits,
    tuning,
    rateStore,
    now,
    room,
    large: createLargePackets({ limits, tuning, now }),
    rateGate: createRateGate({ rateStore, now }),
    holding,
    intake: createIntake({ limits, publisher, rateStore }),
    wasRead: acknowledger.wasRead,
  });
  return { room, holding, acknowledger, publisher, reader };
}

/** What lets devices in, and sends them what is for them. */
function createSessionParts({
  options: { limits, log, now },
  ports,
  tuning,
  registry,
}: Common): Pick<Parts, 'authenticator' | 'subscriber' | 'downlinkRoom'> {
  const logRefused = createRefusedLoginLog(log, now, 'mqtt');
  const { maxUnackedMessages } = tuning;
  const authenticator = createAuthenticator({
    ports,
    registry,
    limits,
    maxUnackedMessages,
    log,
    logRefused,
  });
  const downlinkRoom = createDownlinkRoom(tuning.maxDownlinkBytes);
  const downlinkDeps = {
    ports,
    log,
    maxQueued: tuning.maxQueuedDownlinks,
    room: downlinkRoom,
  };
  const subscriber = createSubscriber(limits, downlinkDeps, {
    now,
    clock: ports.clock,
    onTooLarge: ({ identity }, packet) => tellOfTooLarge(ports, registry, identity, packet),
  });
  return { authenticator, subscriber, downlinkRoom };
}
