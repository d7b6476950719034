import type { Bus, PresentDevice } from '../bus/bus.ts';
import { presenceOf } from '../contract/values.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import type { Reach } from '../streams/reach.ts';
import { invalidLastEventId, type OpenSource } from '../streams/schema.ts';
import { stillHere, type StreamPiece, writeMessage } from '../streams/server-sent.ts';
import { Member, type WaitingRoom } from '../streams/subscriber.ts';

/** Devices of one account that are named in one turn; of more readers are told to ask again. */
export const maxNamed = 100;

/** Of a turn: devices as they are now, or why a reader is to ask again. */
export type PresenceTurn = { devices: PresentDevice[] } | { reason: AskAgain };

/** Why any device may have changed; of several the last of them is told. */
const reasons = ['changed', 'many', 'missed'] as const;
export type AskAgain = (typeof reasons)[number];

/** What changed since the last turn: of a device that came and left meanwhile, how it stands now. */
export class PresenceChanges {
  #devices = new Map<number, PresentDevice>();
  #reason: AskAgain | null = null;

  get isEmpty(): boolean {
    return this.#reason === null && this.#devices.size === 0;
  }

  add(devices: readonly PresentDevice[]): void {
    for (const device of devices) this.#devices.set(device.deviceId, device);
    if (this.#devices.size > maxNamed) this.addAll('many');
  }

  /** Any of them may have changed. */
  addAll(reason: AskAgain): void {
    const before = this.#reason;
    const isMore = before === null || reasons.indexOf(reason) > reasons.indexOf(before);
    if (isMore) this.#reason = reason;
    this.#devices.clear();
  }

  /** What there is; nothing is left. */
  take(): PresenceTurn {
    const turn: PresenceTurn =
      this.#reason === null ? { devices: [...this.#devices.values()] } : { reason: this.#reason };
    this.#reason = null;
    this.#devices = new Map();
    return turn;
  }
}

type BoardOptions = {
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  write: WriteTurn;
  /** The last stream has left. */
  onEnd: () => void;
};

type Joined = { member: Member<string>; leave: () => void };

/** Between two turns. After one that told to ask again there is more time: answers cost more than turns. */
const pauseMs = 1_000;
const pauseAfterAllMs = 2_000;

/** Tells the streams of one account who connected and left: at once after a pause, and then in turns. */
export class PresenceBoard {
  readonly #options: BoardOptions;
  readonly #members = new Map<Member<string>, Reach>();
  readonly #changes = new PresenceChanges();
  readonly #beating: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #nextMs = -Infinity;

  constructor(options: BoardOptions) {
    this.#options = options;
    this.#beating = setInterval(() => this.#beat(), options.heartbeatMs / 2);
    this.#beating.unref();
  }

  join(reach: Reach): Joined {
    const member = new Member(position, this.#options.monotonicClock(), this.#options.room);
    this.#members.set(member, reach);
    return { member, leave: () => this.#leave(member) };
  }

  /** Null: any may have changed. */
  hear(devices: readonly PresentDevice[] | null): void {
    if (devices) this.#changes.add(devices);
    else this.#changes.addAll('many');
    this.#schedule();
  }

  /** Devices were added, removed, labelled or configured anew. */
  change(): void {
    this.#changes.addAll('changed');
    this.#schedule();
  }

  /** Something may not have been heard. */
  miss(): void {
    this.#changes.addAll('missed');
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer || this.#members.size === 0) return;
    const waitMs = Math.max(0, this.#nextMs - this.#options.monotonicClock());
    this.#timer = setTimeout(() => this.#tell(), waitMs);
  }

  #tell(): void {
    this.#timer = undefined;
    const monotonicMs = this.#options.monotonicClock();
    const turn = this.#changes.take();
    this.#nextMs = monotonicMs + ('devices' in turn ? pauseMs : pauseAfterAllMs);
    const written = new Map<string, Buffer>();
    for (const [member, reach] of this.#members) {
      const bytes = written.get(reach.key) ?? this.#options.write(turn, reach);
      written.set(reach.key, bytes);
      if (bytes.length > 0) member.give({ bytes, position }, monotonicMs);
    }
  }

  #beat(): void {
    const monotonicMs = this.#options.monotonicClock();
    const piece = { bytes: Buffer.from(stillHere), position };
    for (const member of this.#members.keys())
      if (monotonicMs - member.givenMs >= this.#options.heartbeatMs / 2) member.give(piece, monotonicMs);
  }

  #leave(member: Member<string>): void {
    member.leave();
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    clearInterval(this.#beating);
    clearTimeout(this.#timer);
    this.#options.onEnd();
  }
}

/**
 * Where a reader is, whatever it has read: who was there a moment ago is written nowhere, so that one that comes
 * back is told to ask again.
 */
export const position = '1';

export const writeAskAgain = (reason: AskAgain): Buffer =>
  Buffer.from(writeMessage('devices', JSON.stringify({ reason })));

/** The messages of a turn about the devices of `reach`, as of `StreamPiece`; empty where there is none. */
export type WriteTurn = (turn: PresenceTurn, reach: Pick<Reach, 'has'>) => Buffer;

/** `isIntermittent`: of a connector, as of `Presence`. */
export function createWriteTurn(isIntermittent: (connectorId: number) => boolean): WriteTurn {
  return (turn, reach) => {
    if ('reason' in turn) return writeAskAgain(turn.reason);
    const messages = turn.devices
      .filter(({ deviceId }) => reach.has(deviceId))
      .map(({ uuid, connected, connectorId, seenTs }) => {
        const presence = presenceOf(connected, isIntermittent(connectorId));
        const told = { deviceAuthUuid: uuid, presence, lastSeenTs: seenTs };
        return writeMessage('device', JSON.stringify(told));
      });
    return Buffer.from(messages.join('\n'));
  };
}

export type PresenceSourceDeps = {
  bus: Bus;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** Of a connector, as of `Presence`. */
  isIntermittent: (connectorId: number) => boolean;
};

/** Who connects and leaves, as it is written, and that the list of devices changed. Hears nothing while there is no stream. */
export function createPresenceSource(deps: PresenceSourceDeps): OpenSource {
  const { bus } = deps;
  const boards = new Map<number, PresenceBoard>();
  const write = createWriteTurn(deps.isIntermittent);
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('presence', ({ accounts }) => {
        for (const { accountId, devices } of accounts) boards.get(accountId)?.hear(devices);
      }),
      bus.subscribe('fleet', ({ accountId }) => boards.get(accountId)?.change()),
      // Which devices a filter lets through changed, too.
      bus.subscribe('labels', ({ accountId }) => boards.get(accountId)?.change()),
      bus.subscribe('resync', () => {
        for (const board of boards.values()) board.miss();
      }),
    ];
  };
  const open = (accountId: number): PresenceBoard => {
    if (boards.size === 0) listen();
    const onEnd = () => {
      boards.delete(accountId);
      if (boards.size === 0) for (const end of ends) end();
    };
    const board = new PresenceBoard({ ...deps, write, onEnd });
    boards.set(accountId, board);
    return board;
  };

  return async ({ reach, from }) => {
    if (from !== null && from !== position) throw invalidLastEventId();
    const board = boards.get(reach.accountId) ?? open(reach.accountId);
    const { member, leave } = board.join(reach);
    return { leave, pieces: () => read(member, from !== null) };
  };
}

async function* read(
  member: Member<string>,
  isResumed: boolean,
): AsyncGenerator<StreamPiece<string>> {
  const first = isResumed ? writeAskAgain('missed') : Buffer.from(stillHere);
  yield { bytes: first, position };
  yield* member.read();
  if (member.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: member.reason }));
  yield { bytes: Buffer.from(why), position };
}
