import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DeviceIdentity, Downlink } from '../../src/contract/uplink.ts';
import { inTurns } from '../../src/lib/in-turns.ts';
import { createDownlinkRoom } from '../device/downlink-room.ts';
import type { Log, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { HttpDevices } from './devices.ts';
import type { Given } from './down-after.ts';
import { wakePolls } from './down-bus.ts';
import { Poll, sendMessages } from './down-poll.ts';
import { readPollQuery } from './down-query.ts';
import { createPollReader } from './down-read.ts';
import { Polls } from './down-registry.ts';
import { readCredentials } from './login.ts';
import { createPollTurns } from './poll-limits.ts';
import { createPollPresence } from './poll-presence.ts';
import { comeLater, HttpProblem, unauthenticated } from './problem.ts';

export type DownDeps = {
  ports: ConnectorPorts;
  devices: Pick<HttpDevices, 'of' | 'takePoll'>;
  tuning: Pick<
    Tuning,
    'maxDownlinkBytes' | 'pollRefusalMs' | 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'
  >;
  log: Log;
  now: () => number;
};

/** Of all devices; the HTTP server has no more connections by default. */
const maxWaiting = 20_000;
const fullSeconds = 30;
/** A device that polls without a pause has asked again by then, also over a slow network. */
const graceMs = 5_000;

/** Gives devices what is for them with GET, as soon as there is something. */
export function createHttpDown({ ports, devices, tuning, log, now }: DownDeps) {
  const polls = new Polls();
  const presence = createPollPresence({ ports, graceMs });
  const connectionsOf = (accountId: number) => ports.maxConnectionsOf?.(accountId) ?? maxWaiting;
  const turns = createPollTurns({ devices, connectionsOf, now, refusalMs: tuning.pollRefusalMs });
  let isStopping = false;
  const room = createDownlinkRoom(tuning.maxDownlinkBytes);
  const { read } = createPollReader({ ports, room, tuning, log, answer: end });
  const endWaking = wakePolls({ ports, polls, wake: (poll) => void read(poll), end, log });

  /** Answers it; with nothing where it has waited long enough, or is to make room. */
  function end(poll: Poll, messages: readonly Downlink[], given: Given): void {
    if (poll.isOver) return;
    drop(poll, !poll.hasLeft);
    sendMessages(poll, messages, given, ports.clock());
  }

  function drop(poll: Poll, isAnswered: boolean): void {
    if (poll.isPresent) presence.ended(poll.device, isAnswered);
    poll.isPresent = false;
    poll.end();
    polls.remove(poll);
  }

  async function acknowledge(device: DeviceIdentity, { pId, isProfileKnown, texts }: Given) {
    const topic = 'display' as const;
    const told = texts.map((keptId) => ports.delivered(device, { topic, payload: null, keptId }));
    if (pId !== null && !isProfileKnown)
      told.push(ports.delivered(device, { topic: 'profile', payload: null, pId }));
    await Promise.all(told);
  }

  function refuseBeyond({ accountId }: DeviceIdentity): void {
    if (polls.all.size >= maxWaiting || polls.countOf(accountId) >= connectionsOf(accountId))
      throw comeLater('As many devices wait as may: try again later.', fullSeconds);
  }

  return {
    /** Resolves once it is answered, or waits. Rejects with what is answered instead. */
    async get(
      request: IncomingMessage,
      response: ServerResponse,
      { device, search }: { device: DeviceIdentity; search: string },
    ): Promise<void> {
      refuseOthers(request);
      await turns.take(device, response);
      const query = readPollQuery(search);
      await acknowledge(device, query.given);
      refuseBeyond(device);
      const poll = new Poll(device, query, response);
      if (isStopping) throw comeLater('The service stops: try again.', 1);
      if (response.destroyed) return;
      const { socket } = request;
      const onEnd = () => {
        poll.hasLeft = true;
        late(poll);
      };
      socket.once('end', onEnd);
      response.once('close', () => {
        socket.off('end', onEnd);
        drop(poll, false);
      });
      const replaced = polls.add(poll);
      if (replaced) end(replaced, [], replaced.given);
      poll.hasLeft = socket.readableEnded;
      poll.isLate = query.waitMs === 0 || poll.hasLeft;
      try {
        // What ended its access while it was let in was told before it was known here.
        const credentials = readCredentials(request.headers.authorization, device.uuid);
        if (!credentials || !(await ports.authenticateDevice(credentials))) throw unauthenticated();
        await read(poll, true);
      } catch (error) {
        drop(poll, false);
        throw error;
      }
      if (poll.isOver) return;
      poll.timer = setTimeout(() => late(poll), query.waitMs);
      poll.isPresent = true;
      presence.began(device);
    },

    countWaiting: () => polls.all.size,
    countRefusals: turns.countRefusals,
    forgetIdle: turns.forgetIdle,

    /** Nobody waits any longer. */
    async stop(): Promise<void> {
      isStopping = true;
      turns.stop();
      endWaking();
      await inTurns(polls.all, (poll) => {
        if (!poll.response.headersSent) poll.response.setHeader('Connection', 'close');
        end(poll, [], poll.given);
      });
      presence.stop();
    },
  };

  function late(poll: Poll): void {
    poll.isLate = true;
    if (!poll.isReading) end(poll, [], poll.given);
  }
}

/** RFC 9110 section 9.3.1: content in a GET has no meaning, and who sends it may mean to smuggle a request. */
function refuseOthers({ method, headers }: IncomingMessage): void {
  if (method !== 'GET')
    throw new HttpProblem(405, 'method-not-allowed', 'Expected GET.', {
      headers: { Allow: 'GET' },
    });
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  if (length !== '0' || encoding !== undefined)
    throw new HttpProblem(400, 'invalid-input', 'Expected no body.', {
      headers: { Connection: 'close' },
    });
}
