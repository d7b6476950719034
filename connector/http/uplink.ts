import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { ByteRoom, type Reservation } from '../../src/lib/byte-room.ts';
import { waitAtMost } from '../../src/lib/wait.ts';
import { parseUplink } from '../device/parse-uplink.ts';
import type { PayloadFormat } from '../device/uplink.ts';
import { createUnknownMemberTurns } from '../device/unknown-members.ts';
import type { ConnectorLimits, Log, Observer, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { createBegunBodies } from './begun-bodies.ts';
import { readFormat, takeArrivedBody } from './body.ts';
import { longestDelayMs, type HttpDevice, type HttpDevices } from './devices.ts';
import { Exchange, type ExchangeDeps } from './exchange.ts';
import { createBodies, type BodiesOptions } from './large-bodies.ts';
import { comeLater, HttpProblem, sendProblem, tooMany } from './problem.ts';

export type UplinkDeps = {
  ports: ConnectorPorts;
  devices: HttpDevices;
  limits: Pick<ConnectorLimits, 'storeTimeoutMs' | 'rejectionsPerMessage'> &
    BodiesOptions['limits'];
  tuning: Pick<Tuning, 'maxUnackedTotalBytes' | 'maxBegunBytes' | 'messageOverheadBytes'> &
    BodiesOptions['tuning'];
  observe: Pick<Observer, 'message' | 'acknowledged'>;
  log: Log;
  now: () => number;
};

/** Parsed, a payload takes about so many times its bytes; it is kept besides. */
const parsedFactor = 4;
/** Requests that wait for room: each holds a connection. */
const waiting = { share: 1 / 4, maxWaiting: 1_000, maxWaitingOfKey: 250 };
const patienceMs = 5_000;
const fullSeconds = 3_600;

/** Takes what devices send with POST. */
export function createHttpUplink(deps: UplinkDeps) {
  const { ports, devices, limits, tuning, observe, log, now } = deps;
  const room = new ByteRoom({ maxBytes: tuning.maxUnackedTotalBytes, ...waiting });
  const bodies = createBodies({
    limits,
    tuning,
    bodies: createBegunBodies(tuning.maxBegunBytes),
  });
  const takeTurn = createUnknownMemberTurns(now);
  /** In the order in which they were handed on. */
  const underWay = new Set<Exchange>();

  const exchangeDeps: ExchangeDeps = {
    clock: ports.clock,
    over(exchange) {
      underWay.delete(exchange);
      if (exchange.isGone) exchange.place?.leave();
      if (exchange.isWithdrawn) ports.withdraw(exchange.device);
      else if (exchange.sinceMs < Infinity)
        observe.acknowledged((now() - exchange.sinceMs) / 1_000);
    },
    refuse({ response, device }, error) {
      if (!(error instanceof HttpProblem))
        log.error(
          { event: 'message.not-stored', err: error, device: device.uuid },
          'A message was not stored: its sender is told to send it again.',
        );
      const problem =
        error instanceof HttpProblem
          ? error
          : comeLater('This could not be stored: the log of the service says why.');
      void sendProblem(response.req, response, problem, ports.clock());
    },
  };

  /** Reads the message and hands it on; the answer follows by itself. Rejects with what is answered instead. */
  async function post(
    request: IncomingMessage,
    response: ServerResponse,
    identity: DeviceIdentity,
    name: string,
  ): Promise<void> {
    if (request.method !== 'POST')
      throw new HttpProblem(405, 'method-not-allowed', 'Expected POST.', {
        headers: { Allow: 'POST' },
      });
    // It left while it was let in: nothing would tell that its place is free again.
    if (response.destroyed) return;
    const format = readFormat(request);
    bodies.check(request, name);
    refuseBeyond(devices.of(identity), name);
    const exchange = new Exchange(identity, response, exchangeDeps);
    // It is emitted once: without `once` there is nothing to wrap, and to remove.
    response.on('close', () => {
      exchange.abandon();
      if (exchange.isOver) exchange.place?.leave();
    });
    const body =
      takeArrivedBody(request, limits.maxPacketBytes) ??
      (await bodies.read(request, { name, accountId: identity.accountId }));
    if (exchange.isOver) return;
    exchange.isWhole = true;
    const place = takeRoom(identity, body.length * parsedFactor + tuning.messageOverheadBytes);
    exchange.place = place;
    if (!place.isIn) await waitForRoom(place);
    if (exchange.isOver) return;
    const arrivedTs = ports.clock();
    // The one of before may have been forgotten while the body came: it would be a second one, with rates of its own.
    const device = devices.of(identity);
    devices.enter(device, {
      sinceMs: now(),
      go: () => handOn(exchange, device, { name, body, format, arrivedTs }),
      giveUp: (waitMs) => exchange.refuse(refusalOf(device, waitMs)),
    });
  }

  function refuseBeyond(device: HttpDevice, name: string): void {
    const { identity } = device;
    const waitMs = devices.waitMs(device);
    if (waitMs === 0) return;
    const isFull = ports.holds?.isFull?.(identity.accountId) ?? false;
    if (isFull) ports.holds?.waits(identity, device.upPrefix + name);
    if (isFull || waitMs > longestDelayMs) throw refusalOf(device, waitMs);
  }

  function refusalOf({ identity }: HttpDevice, waitMs: number): HttpProblem {
    if (ports.holds?.isFull?.(identity.accountId))
      return comeLater("The account's quota storedBytes is used up.", fullSeconds);
    if (waitMs === 0) return comeLater('The service stops: send it again.', 1);
    return tooMany('The device, or its account, sends more than it may.', waitMs);
  }

  function takeRoom({ accountId }: DeviceIdentity, bytes: number): Reservation {
    const place = room.enter(String(accountId), bytes);
    if (!place) throw comeLater('Too many requests wait already: try again later.');
    return place;
  }

  async function waitForRoom(place: Reservation): Promise<void> {
    await waitAtMost(place.entered, patienceMs);
    if (place.isIn) return;
    place.leave();
    throw comeLater('The service has too much to do at once: try again later.');
  }

  type Given = { name: string; body: Buffer; format: PayloadFormat; arrivedTs: number };

  function handOn(exchange: Exchange, device: HttpDevice, given: Given): void {
    if (exchange.isOver) return;
    const { name, body, format, arrivedTs } = given;
    const { identity } = device;
    const mayTell = () => takeTurn(identity.uuid);
    const topic = device.upPrefix + name;
    const { rejectionsPerMessage: max } = limits;
    const uplink = parseUplink(topic, device.upPrefix, body, arrivedTs, max, mayTell, format);
    const { content } = uplink;
    exchange.parsed(content);
    if (exchange.isOver) return;
    observe.message(content.kind);
    if (content.kind === 'time') {
      // Its answer says what time it is: nobody else is to be told.
      exchange.echo = content.request.echo;
      uplink.content = { kind: 'none' };
    }
    devices.take(device, uplink.items);
    exchange.sinceMs = now();
    underWay.add(exchange);
    ports.ingest(identity, uplink, exchange);
  }

  return {
    post,

    /** Gives up what is not stored in time. */
    giveUpLate(): void {
      const latestMs = now() - limits.storeTimeoutMs;
      for (const exchange of underWay) {
        if (exchange.sinceMs > latestMs) return;
        exchange.giveUp();
      }
    },

    giveUpAll(): void {
      for (const exchange of underWay) exchange.giveUp();
    },

    countUnderWay: () => underWay.size,
    bytes: () => room.bytes + bodies.bytes(),
  };
}
