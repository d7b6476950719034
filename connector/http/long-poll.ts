import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AskedHow,
  type DeviceIdentity,
  type Downlink,
  type DownTopic,
  downTopics,
  unnamedDownTopics,
} from '../../src/contract/uplink.ts';
import type { MemoryBudget, Reservation } from '../../src/lib/fair-budget.ts';
import { forEachYielding } from '../../src/lib/event-loop.ts';
import { createDownlinkBudget, enterToLoad } from '../device/downlinks.ts';
import { type ConnectorPorts, isUnavailableError, type Log, type Tuning } from '../ports.ts';
import {
  comeLater,
  type HttpDevices,
  HttpProblem,
  readCredentials,
  unauthenticated,
} from './devices.ts';
import { createPollPresence, createPollRate, limitTaking } from './poll-limits.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

/** How many polls may wait, over all devices. The HTTP server accepts no more connections by default. */
const maxWaiting = 20_000;
const fullSeconds = 30;
/** A device that polls without a pause has polled again by then, even over a slow network. */
const graceMs = 5_000;

/** Gives devices their messages by GET, as soon as there are any. */
export function createHttpDown({
  ports,
  devices,
  tuning,
  log,
  now,
}: {
  ports: ConnectorPorts;
  devices: Pick<HttpDevices, 'of' | 'takePoll'>;
  tuning: Pick<
    Tuning,
    'maxDownlinkBytes' | 'pollRefusalMs' | 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'
  >;
  log: Log;
  now: MonotonicClock;
}) {
  const polls = new Polls();
  const presence = createPollPresence({ ports, graceMs });
  const connectionsOf = (accountId: number) => ports.maxConnectionsOf?.(accountId) ?? maxWaiting;
  const pollRate = createPollRate({ devices, connectionsOf, now, refusalMs: tuning.pollRefusalMs });
  let isStopping = false;
  const budget = createDownlinkBudget(tuning.maxDownlinkBytes);
  const { read } = createPollReader({ ports, budget, tuning, log, answer: end });
  const endWaking = wakePolls({ ports, polls, wake: (poll) => void read(poll), end, log });

  /** Answers a poll. It gets no messages if it has waited long enough or has to make room. */
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

  async function acknowledge(
    device: DeviceIdentity,
    { pId, isProfileKnown, texts, command }: Given,
  ) {
    const topic = 'display' as const;
    const deliveries = texts.map((keptId) =>
      ports.delivered(device, { topic, payload: null, keptId }),
    );
    if (pId !== null && !isProfileKnown)
      deliveries.push(ports.delivered(device, { topic: 'profile', payload: null, pId }));
    if (command !== null) {
      const handed = { id: command, expiresTs: Infinity, answerMs: 0 };
      deliveries.push(
        ports.delivered(device, { topic: 'command', payload: null, command: handed }),
      );
    }
    await Promise.all(deliveries);
  }

  function refuseBeyond({ accountId }: DeviceIdentity): void {
    if (polls.all.size >= maxWaiting || polls.countOf(accountId) >= connectionsOf(accountId))
      throw comeLater('Too many devices are waiting already: try again later.', fullSeconds);
  }

  return {
    /** Resolves when the poll is answered or waits. Rejects with the problem to answer with. */
    async get(
      request: IncomingMessage,
      response: ServerResponse,
      { device, search }: { device: DeviceIdentity; search: string },
    ): Promise<void> {
      refuseOthers(request);
      await pollRate.take(device, response);
      const query = readPollQuery(search);
      await acknowledge(device, query.given);
      refuseBeyond(device);
      const poll = new Poll(device, query, response);
      if (isStopping) throw comeLater('The service is stopping: try again.', 1);
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
        // Checks access again: a notice that ended it may have come before the poll was in `polls`.
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
    countRefusals: pollRate.countRefusals,
    forgetIdle: pollRate.forgetIdle,

    /** Ends all polls that wait. */
    async stop(): Promise<void> {
      isStopping = true;
      pollRate.stop();
      endWaking();
      await forEachYielding(polls.all, (poll) => {
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

/** RFC 9110 section 9.3.1: content in a GET has no meaning, and may be an attempt to smuggle a request. */
function refuseOthers({ method, headers }: IncomingMessage): void {
  if (method !== 'GET')
    throw new HttpProblem(405, 'method-not-allowed', 'Expected GET.', {
      headers: { Allow: 'GET' },
    });
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  if (length !== '0' || encoding !== undefined)
    throw new HttpProblem(400, 'invalid-input', 'Expected no request body.', {
      headers: { Connection: 'close' },
    });
}

/** How many polls of one device may wait. A client that was cut off and reconnects may look like two. */
const maxOfDevice = 2;

/** The polls that wait here, by device and by account. */
class Polls {
  readonly all = new Set<Poll>();
  readonly #devices = new Map<string, Poll[]>();
  readonly #accounts = new Map<number, number>();

  /** Adds a poll. Returns the one that has to make room for it. */
  add(poll: Poll): Poll | undefined {
    const { uuid, accountId } = poll.device;
    const own = this.#devices.get(uuid) ?? [];
    this.#devices.set(uuid, [...own, poll]);
    this.#accounts.set(accountId, this.countOf(accountId) + 1);
    this.all.add(poll);
    return own.length >= maxOfDevice ? own[0] : undefined;
  }

  remove(poll: Poll): void {
    if (!this.all.delete(poll)) return;
    const { uuid, accountId } = poll.device;
    const others = this.listOf(uuid).filter((one) => one !== poll);
    if (others.length > 0) this.#devices.set(uuid, others);
    else this.#devices.delete(uuid);
    const left = this.countOf(accountId) - 1;
    if (left > 0) this.#accounts.set(accountId, left);
    else this.#accounts.delete(accountId);
  }

  listOf(uuid: string): readonly Poll[] {
    return this.#devices.get(uuid) ?? [];
  }

  countOf(accountId: number): number {
    return this.#accounts.get(accountId) ?? 0;
  }
}

type PollReaderDeps = {
  ports: Pick<ConnectorPorts, 'subscribed'>;
  /** One budget for all devices: what is being read for them, and written to them. */
  budget: MemoryBudget;
  tuning: Pick<Tuning, 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'>;
  log: Log;
  answer: (poll: Poll, messages: readonly Downlink[], given: Given) => void;
};

const retryMs = 1_000;

/** Reads what is due to a device whose poll waits, and answers the poll if there is something. */
function createPollReader({ ports, budget, tuning, log, answer }: PollReaderDeps) {
  /** What the device was not given yet; null: nothing. */
  async function readOnce(poll: Poll): Promise<ReturnType<typeof pickNew> | null> {
    const due = await ports.subscribed(poll.device, [...poll.topics], poll.askedHow);
    poll.askedHow = 'again';
    const picked = pickNew([...due, ...(poll.errors ?? [])], poll.given, poll.isProfileAsked);
    return picked.messages.length > 0 ? picked : null;
  }

  async function readIn(poll: Poll, place: Reservation): Promise<void> {
    const leave = (): void => place.leave();
    poll.response.once('close', leave);
    do {
      poll.isWoken = false;
      const picked = await readOnce(poll);
      if (poll.isOver) break;
      if (picked) {
        answer(poll, picked.messages, picked.given);
        return limitTaking(poll.response, budget, tuning);
      }
    } while (poll.isWoken);
    poll.response.off('close', leave);
    leave();
    if (poll.isLate) answer(poll, [], poll.given);
  }

  function retry(poll: Poll, error: unknown): void {
    if (poll.isLate) return answer(poll, [], poll.given);
    if (!isUnavailableError(error) && !(error instanceof HttpProblem))
      log.warn(
        { event: 'downlink.unread', err: error, device: poll.device.uuid },
        'The messages due for a device could not be read.',
      );
    setTimeout(() => void read(poll), retryMs).unref();
  }

  /** During a read, asks for one more. `isFirst`: rejects if the read fails; later reads are retried. */
  async function read(poll: Poll, isFirst = false): Promise<void> {
    poll.isWoken = true;
    if (poll.isReading || poll.isOver) return;
    poll.isReading = true;
    let place: Reservation | null = null;
    try {
      place = await enterToLoad(budget, poll.device);
      if (place && !poll.isOver) await readIn(poll, place);
      else place?.leave();
      if (!place) throw comeLater('Too many reads for devices are in progress: try again later.');
    } catch (error) {
      place?.leave();
      if (isFirst) throw error;
      if (!poll.isOver) retry(poll, error);
    } finally {
      poll.isReading = false;
    }
  }

  return { read };
}

/**
 * What a device was given over HTTP. The device sends it back with each poll, so that no process has to remember it.
 * Sending back `pId` and `texts` acknowledges them. A profile that was acknowledged before is `known`.
 */
type Given = {
  /** When the configuration was set, ms. */
  configuredTs: number | null;
  pId: string | null;
  isProfileKnown: boolean;
  /** Purpose and state. */
  place: string | null;
  /** The `keptId` of kept texts for its display. */
  texts: readonly number[];
  /** Identifies the new token, by a part of its hash. */
  token: string | null;
  /** The last command, by its number. */
  command: number | null;
};

const nothingGiven: Given = {
  configuredTs: null,
  pId: null,
  isProfileKnown: false,
  place: null,
  texts: [],
  token: null,
  command: null,
};

const version = '1';
const maxTexts = 100;
const uuidForm = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

/** Encodes it in characters that a query can hold unescaped (RFC 3986 section 2.3). */
function writeAfter(given: Given): string {
  const { configuredTs, pId, isProfileKnown, place, texts, token, command } = given;
  const parts = [version];
  if (configuredTs !== null) parts.push(`c${configuredTs.toString(36)}`);
  if (pId !== null) parts.push((isProfileKnown ? 'k' : 'p') + pId.replaceAll('-', ''));
  if (place !== null) parts.push(`s${place}`);
  if (texts.length > 0) parts.push(`d${texts.map((id) => id.toString(36)).join('_')}`);
  if (token !== null) parts.push(`t${token}`);
  if (command !== null) parts.push(`m${command.toString(36)}`);
  return parts.join('.');
}

/** Null for a text that `writeAfter` cannot have written. A device that begins sends ''. */
function readAfter(text: string): Given | null {
  if (text === '') return nothingGiven;
  const [first, ...parts] = text.split('.', 7);
  if (first !== version) return null;
  let given: Given | null = nothingGiven;
  for (const part of parts) given = given && readPart(given, part[0], part.slice(1));
  return given;
}

function readPart(given: Given, kind: string | undefined, value: string): Given | null {
  if (kind === 'c') {
    const configuredTs = readNumber(value);
    return configuredTs === null ? null : { ...given, configuredTs };
  }
  if (kind === 'p' || kind === 'k') {
    const pId = uuidForm.exec(value)?.slice(1).join('-');
    return pId === undefined ? null : { ...given, pId, isProfileKnown: kind === 'k' };
  }
  if (kind === 's')
    return /^-?\d{1,10}_-?\d{1,10}$/.test(value) ? { ...given, place: value } : null;
  if (kind === 't') return /^[\w-]{8}$/.test(value) ? { ...given, token: value } : null;
  if (kind === 'm') {
    const command = readNumber(value);
    return command === null ? null : { ...given, command };
  }
  if (kind !== 'd') return null;
  const texts = value.split('_', maxTexts + 1).map(readNumber);
  const areNumbers = texts.every((id) => id !== null);
  return areNumbers && texts.length <= maxTexts ? { ...given, texts } : null;
}

const readNumber = (value: string): number | null =>
  /^[0-9a-z]{1,10}$/.test(value) ? Number.parseInt(value, 36) : null;

/** What was acknowledged need not be listed again. */
const acknowledged = (given: Given): Given => ({
  ...given,
  isProfileKnown: given.pId !== null,
  texts: [],
  command: null,
});

/** The messages that the device was not given yet, and all that it then has. `isAsked`: it wants its profile again. */
function pickNew(
  due: readonly Downlink[],
  before: Given,
  isAsked: boolean,
): { messages: Downlink[]; given: Given } {
  let given = before;
  const messages = due.filter((message) => {
    const next = give(message, given, isAsked);
    given = next ?? given;
    return next !== null;
  });
  return { messages, given };
}

function give(
  { topic, payload, pId, keptId, command }: Downlink,
  given: Given,
  isAsked: boolean,
): Given | null {
  if (topic === 'configuration') {
    const { ts: configuredTs } = payload as { ts: number };
    return configuredTs === given.configuredTs ? null : { ...given, configuredTs };
  }
  if (topic === 'profile') {
    if (pId === undefined || (pId === given.pId && !isAsked)) return null;
    return { ...given, pId, isProfileKnown: false };
  }
  if (topic === 'state') {
    const { puId, stId } = payload as { puId: number; stId: number };
    const place = `${puId}_${stId}`;
    return place === given.place ? null : { ...given, place };
  }
  if (topic === 'token') {
    const { deviceAuthToken } = payload as { deviceAuthToken: string };
    const token = createHash('sha256').update(deviceAuthToken).digest('base64url').slice(0, 8);
    return token === given.token ? null : { ...given, token };
  }
  if (command) return { ...given, command: command.id };
  if (keptId === undefined) return given;
  return { ...given, texts: [...given.texts, keptId] };
}

type WakeDeps = {
  ports: Pick<ConnectorPorts, 'bus' | 'onAccountDisabled'>;
  polls: Polls;
  /** Called when something may be due to the poll. */
  wake: (poll: Poll) => void;
  end: (poll: Poll, messages: readonly Downlink[], given: Given) => void;
  log: Log;
};

/** Wakes polls when other parts of the installation report something for them. Returns what ends the subscriptions. */
function wakePolls({ ports, polls, wake, end, log }: WakeDeps): () => void {
  const wakeAll = (uuid: string, topic: DownTopic, before: (poll: Poll) => void): void => {
    for (const poll of polls.listOf(uuid)) {
      if (!poll.topics.includes(topic)) continue;
      before(poll);
      wake(poll);
    }
  };
  /** The client polls again, and then is let in or not. */
  const endOne = (poll: Poll): void => end(poll, [], poll.given);
  const all = (does: (poll: Poll) => void): void =>
    void forEachYielding(polls.all, does).catch((error: unknown) =>
      log.error(
        { event: 'downlink.unread', err: error },
        'The messages due for the waiting devices could not be read.',
      ),
    );
  const { bus } = ports;
  const ends = [
    ports.onAccountDisabled((accountId) =>
      all((poll) => {
        if (poll.device.accountId === accountId) endOne(poll);
      }),
    ),
    bus.subscribe('device', ({ uuid, push }) => {
      if (!push) return;
      wakeAll(uuid, push, (poll) => {
        if (push === 'profile') poll.isProfileAsked = true;
      });
    }),
    bus.subscribe('due', ({ uuid, topic }) => wakeAll(uuid, topic, () => undefined)),
    bus.subscribe('down', ({ uuid, message }) =>
      wakeAll(uuid, message.topic, (poll) => {
        // All others are read from the database.
        if (message.topic === 'errors') poll.addError(message);
      }),
    ),
    bus.subscribe('access', ({ uuid }) => {
      for (const poll of polls.listOf(uuid)) endOne(poll);
    }),
    bus.subscribe('resync', () => all(wake)),
  ];
  return () => {
    for (const stop of ends) stop();
  };
}

/** How many errors a poll keeps while it reads the database. More are lost, as in a full queue. */
const maxErrors = 100;

/** A request that waits for messages to its device. Keep it small: there may be ten thousand. */
class Poll {
  readonly device: DeviceIdentity;
  readonly topics: PollQuery['topics'];
  /** What the device has and has acknowledged. */
  readonly given: Given;
  /** How it asks for what is due; it asks more than once if it is woken. */
  askedHow: AskedHow;
  readonly response: ServerResponse;
  timer: NodeJS.Timeout | null = null;
  isOver = false;
  /** Its device counts as connected because of it. */
  isPresent = false;
  /** A read of what is due is under way. */
  isReading = false;
  /** Something fell due during that read. */
  isWoken = false;
  /** It has waited as long as it asked for. */
  isLate = false;
  /** The device is to get its profile even if it had it before. */
  isProfileAsked = false;
  /** The client has ended its side: it still gets an answer, but may be gone. */
  hasLeft = false;
  /** Messages that are in no table. */
  errors: Downlink[] | null = null;

  constructor(device: DeviceIdentity, { topics, given }: PollQuery, response: ServerResponse) {
    this.device = device;
    this.topics = topics;
    this.given = acknowledged(given);
    this.askedHow = given === nothingGiven ? 'subscribed' : 'again';
    this.response = response;
  }

  addError(message: Downlink): void {
    this.errors ??= [];
    if (this.errors.length < maxErrors) this.errors.push(message);
  }

  /** From now on nobody waits for it. */
  end(): void {
    this.isOver = true;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** Answers a poll. Without messages, none arrived in time. */
function sendMessages(
  { response }: Poll,
  messages: readonly Downlink[],
  given: Given,
  timestamp: number,
): void {
  if (response.headersSent || response.destroyed) return;
  const listed = messages.map(({ topic, payload }) => ({ topic, payload }));
  const body = Buffer.from(
    JSON.stringify({ messages: listed, after: writeAfter(given), timestamp }),
  );
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    'Cache-Control': 'no-store',
  });
  response.end(body);
}

/** What a poll asks for. `waitMs` 0: only what is there now. */
type PollQuery = { waitMs: number; topics: readonly DownTopic[]; given: Given };

/** Most proxies end a request that is unanswered for a minute. */
const maxWaitSeconds = 60;

/** Reads a poll's query and ignores unknown members. Throws 400 if it is invalid. */
function readPollQuery(query: string): PollQuery {
  const members = new URLSearchParams(query);
  return {
    waitMs: readWait(members.get('wait')) * 1_000,
    topics: readTopics(members.get('topics')),
    given: readGiven(members.get('after')),
  };
}

function readWait(text: string | null): number {
  if (text === null) return 0;
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Infinity;
  if (seconds <= maxWaitSeconds) return seconds;
  throw wrong('wait', `expected whole seconds, 0 to ${maxWaitSeconds}`);
}

function readTopics(text: string | null): readonly DownTopic[] {
  if (text === null) return unnamedDownTopics;
  const names = new Set(text.split(','));
  const topics = downTopics.filter((topic) => names.has(topic));
  if (topics.length === names.size) return topics;
  throw wrong('topics', `expected one or more of ${downTopics.join()}, separated by commas`);
}

function readGiven(text: string | null): Given {
  const given = readAfter(text ?? '');
  if (given) return given;
  throw wrong('after', 'expected `after` exactly as in the previous answer');
}

function wrong(member: string, message: string): HttpProblem {
  const errors = [{ path: `/${member}`, message }];
  return new HttpProblem(400, 'invalid-input', `${member}: ${message}.`, { errors });
}
