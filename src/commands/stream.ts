import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import type { Reach } from '../streams/reach.ts';
import { invalidLastEventId, type OpenSource, type StreamedCommand } from '../streams/schema.ts';
import { stillHere, type StreamPiece, writeMessage } from '../streams/server-sent.ts';
import { Subscriber, type SubscriberBudget } from '../streams/subscriber.ts';

type CommandSourceDeps = {
  db: Sql;
  bus: Pick<Bus, 'subscribe'>;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  onError: (error: unknown) => void;
};

/** The most commands that one batch names. If more changed, readers are told to request the list again. */
const maxNamed = 100;
/** Between two batches. */
const pauseMs = 500;

/**
 * Every reader's position, whatever it has read. What commands were is not repeated, so a reader that returns is told
 * to request the list again.
 */
const position = '1';

const writeAskAgain = (reason: 'many' | 'missed'): Buffer =>
  Buffer.from(writeMessage('commands', JSON.stringify({ reason })));

/** The streams of one account. What changes within `pauseMs` is read once for all of them. */
class AccountCommands {
  readonly #deps: CommandSourceDeps;
  readonly #accountId: number;
  readonly #onEnd: () => void;
  readonly #subscribers = new Map<Subscriber<string>, Reach>();
  readonly #beating: NodeJS.Timeout;
  #changed = new Set<string>();
  #askAgain: 'many' | 'missed' | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** `onEnd`: called when the last stream has left. */
  constructor(accountId: number, deps: CommandSourceDeps, onEnd: () => void) {
    this.#accountId = accountId;
    this.#deps = deps;
    this.#onEnd = onEnd;
    this.#beating = setInterval(() => this.#beat(), deps.heartbeatMs / 2).unref();
  }

  join(reach: Reach): Subscriber<string> {
    const { monotonicClock, budget } = this.#deps;
    const subscriber = new Subscriber(position, monotonicClock(), budget);
    this.#subscribers.set(subscriber, reach);
    return subscriber;
  }

  leave(subscriber: Subscriber<string>): void {
    subscriber.leave();
    if (!this.#subscribers.delete(subscriber) || this.#subscribers.size > 0) return;
    clearInterval(this.#beating);
    clearTimeout(this.#timer);
    this.#onEnd();
  }

  change(commandId: string): void {
    this.#changed.add(commandId);
    if (this.#changed.size > maxNamed) return this.miss('many');
    this.#schedule();
  }

  /** Any command may have changed. */
  miss(reason: 'many' | 'missed'): void {
    this.#changed.clear();
    if (this.#askAgain !== 'missed') this.#askAgain = reason;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#subscribers.size > 0) this.#timer ??= setTimeout(() => void this.#tell(), pauseMs);
  }

  async #tell(): Promise<void> {
    const [ids, askAgain] = [[...this.#changed], this.#askAgain];
    [this.#changed, this.#askAgain] = [new Set(), null];
    const changed = await listChanged(this.#deps.db, this.#accountId, ids).catch(
      (error: unknown) => {
        this.#deps.onError(error);
        return null;
      },
    );
    this.#timer = undefined;
    const why = askAgain ?? (changed === null ? 'missed' : null);
    for (const [subscriber, reach] of this.#subscribers) {
      const own = (changed ?? []).filter(({ deviceId }) => reach.has(deviceId));
      const messages = own.map(({ deviceId: _id, progress, ...command }) =>
        writeMessage('command', JSON.stringify({ ...command, progress: progress ?? undefined })),
      );
      const bytes = why ? writeAskAgain(why) : Buffer.from(messages.join('\n'));
      if (bytes.length > 0) subscriber.give({ bytes, position }, this.#deps.monotonicClock());
    }
    if (this.#changed.size > 0 || this.#askAgain) this.#schedule();
  }

  #beat(): void {
    const monotonicMs = this.#deps.monotonicClock();
    for (const subscriber of this.#subscribers.keys())
      if (monotonicMs - subscriber.givenMs >= this.#deps.heartbeatMs / 2)
        subscriber.give({ bytes: Buffer.from(stillHere), position }, monotonicMs);
  }
}

type ChangedCommand = Omit<StreamedCommand, 'progress'> & {
  deviceId: number;
  progress: number | null;
};

async function listChanged(sql: Sql, accountId: number, ids: string[]): Promise<ChangedCommand[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.query<ChangedCommand>({
    name: 'commands-changed',
    text: `
      select c.device_id as "deviceId", c.uuid as "commandId", d.uuid as "deviceAuthUuid", c.name,
             c.state, c.progress
        from command c
        join device d on d.id = c.device_id and d.account_id = $1
       where c.uuid = any($2::uuid[])
       order by c.id`,
    values: [accountId, ids],
  });
  return rows;
}

/** Streams the states of commands as they change. Listens only while there are streams. */
export function createCommandSource(deps: CommandSourceDeps): OpenSource {
  const byAccount = new Map<number, AccountCommands>();
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      deps.bus.subscribe('command', ({ accountId, commandId }) =>
        byAccount.get(accountId)?.change(commandId),
      ),
      deps.bus.subscribe('resync', () => {
        for (const ofAccount of byAccount.values()) ofAccount.miss('missed');
      }),
    ];
  };
  const open = (accountId: number): AccountCommands => {
    if (byAccount.size === 0) listen();
    const ofAccount = new AccountCommands(accountId, deps, () => {
      byAccount.delete(accountId);
      if (byAccount.size === 0) for (const end of ends) end();
    });
    byAccount.set(accountId, ofAccount);
    return ofAccount;
  };

  return async ({ reach, from }) => {
    if (from !== null && from !== position) throw invalidLastEventId();
    const ofAccount = byAccount.get(reach.accountId) ?? open(reach.accountId);
    const subscriber = ofAccount.join(reach);
    const leave = () => ofAccount.leave(subscriber);
    return { leave, pieces: () => read(subscriber, from !== null) };
  };
}

async function* read(
  subscriber: Subscriber<string>,
  isResumed: boolean,
): AsyncGenerator<StreamPiece<string>> {
  yield { bytes: isResumed ? writeAskAgain('missed') : Buffer.from(stillHere), position };
  yield* subscriber.read();
  if (subscriber.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: subscriber.reason }));
  yield { bytes: Buffer.from(why), position };
}
