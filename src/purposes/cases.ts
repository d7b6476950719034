import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { Purpose, type PurposePath } from '../contract/purpose.ts';
import { type Warning, Warnings, WitnessStep } from '../contract/warnings.ts';
import type { Bounds } from '../engine/explore/classes.ts';
import { DomainError } from '../errors.ts';
import { timestamp } from '../http/schema.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { messageOf } from '../lib/thrown.ts';
import { waitAtMost } from '../lib/wait.ts';
import type { Exploration, Found } from './cases-worker.ts';

const Place = z.object({ puId: z.int(), stId: z.int() });
const EventPlace = Place.extend({ evId: z.int() });

const Claim = z
  .object({ is: z.enum(['witnessed', 'never', 'unknown']), steps: z.array(WitnessStep).optional() })
  .meta({
    id: 'Claim',
    description:
      '`witnessed`: `steps` lead there, from the moment at which the purpose becomes current. `never`: no measurement ' +
      'and no time does. `unknown`: not found, and not all was tried.',
  });

/** The answer of Get Cases. */
export const PurposeCases = z
  .object({
    events: z.array(
      EventPlace.extend({
        fires: Claim,
        ends: Claim.nullable().meta({
          description: 'How its alarm is over; null if it opens none.',
        }),
        why: z
          .enum(['no-causes', 'never-agrees', 'exclude-each-other', 'unreachable', 'shadowed'])
          .nullable()
          .meta({ description: 'Why it never fires; null if it may.' }),
      }),
    ),
    states: z.array(Place.extend({ reached: Claim, left: Claim })),
    isWhole: z.boolean().meta({ description: 'Whether nothing is `unknown`.' }),
    warnings: Warnings,
    cases: z
      .array(
        z.object({
          rule: z.string(),
          purposes: z.array(Purpose),
          steps: z.array(z.looseObject({})),
          ends: Place,
        }),
      )
      .meta({ description: 'Tests for an engine, in the form of test/vectors (its README).' }),
    timestamp,
  })
  .meta({ id: 'PurposeCases' });
type PurposeCases = z.infer<typeof PurposeCases>;

/** Answers that are kept: they depend on what was asked alone. */
const mostKept = { max: 200, maxSize: 4_194_304 };
const mostWaiting = { maxWaiting: 100, maxWaitingOfKey: 4 };
/** It takes a fraction of a second; on a busy machine more. */
const mostMs = 10_000;
/** How long somebody who asks for cases waits for a turn. */
const waitMs = 5_000;
const mostMegabytes = 128;

type Cases = Omit<PurposeCases, 'timestamp'>;

/** What is to be warned of. `bounds`: the values that senses of the chosen devices can have, if known. */
type Asked = { purposes: Purpose[]; pathOf: PurposePath; bounds?: ReadonlyMap<string, Bounds> };

export type Exploring = {
  /** What a purpose by itself can do. Throws `too-many-requests` and `unavailable`. */
  listCases(accountId: number, purpose: Purpose): Promise<Cases>;
  /** What exploring purposes as one profile shows to be warned of; null if that takes too long. Never rejects. */
  warnOf(accountId: number, asked: Asked): Promise<Warning[] | null>;
  close(): Promise<void>;
};

/**
 * Explores purposes in a thread of bounded time and memory, which begins with the first one and stays; accounts take
 * turns. `warnMs`: how long `warnOf` takes at most; 0: it explores nothing, and has no warnings.
 */
export function createExploring({ warnMs }: { warnMs: number }): Exploring {
  const turns = new FairBudget({ most: 1, mostOfKey: () => 1, ...mostWaiting });
  const kept = new LRUCache<string, Found>({
    ...mostKept,
    sizeCalculation: (found, name) => JSON.stringify(found).length + name.length,
  });
  const thread = new ExploringThread();
  async function explore(
    accountId: number,
    exploration: Exploration,
    withinMs: number,
  ): Promise<Found> {
    const name = createHash('sha256').update(JSON.stringify(exploration)).digest('base64');
    const known = kept.get(name);
    if (known) return known;
    const leave = await turns.take(`${accountId}`, { withinMs, refuse: tooMany });
    try {
      // Another request may have asked the same meanwhile.
      const found = kept.get(name) ?? (await thread.explore(exploration));
      kept.set(name, found);
      return found;
    } finally {
      leave();
    }
  }
  return {
    listCases: (accountId, purpose) =>
      explore(accountId, { purposes: [purpose], paths: [''], bounds: [], withCases: true }, waitMs),
    async warnOf(accountId, { purposes, pathOf, bounds = new Map<string, Bounds>() }) {
      if (warnMs === 0) return [];
      const paths = purposes.map((_, index) => pathOf(index));
      const exploration = { purposes, paths, bounds: [...bounds], withCases: false };
      let warnings: Warning[] | null = null;
      const exploring = explore(accountId, exploration, warnMs).then(
        (found) => void (warnings = found.warnings),
        () => undefined,
      );
      await waitAtMost(exploring, warnMs);
      return warnings;
    },
    close: () => thread.close(),
  };
}

const tooMany = () =>
  new DomainError('too-many-requests', 'Other purposes are being explored: try again later.', {
    retryAfterSeconds: waitMs / 1_000,
  });

/** Explores one at a time. */
class ExploringThread {
  #worker: Worker | null = null;

  /** Throws `unavailable`; the next one then has a new thread. */
  async explore(exploration: Exploration): Promise<Found> {
    const worker = (this.#worker ??= startThread());
    try {
      const signal = AbortSignal.timeout(mostMs);
      const found = once(worker, 'message', { signal }) as Promise<[Found]>;
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(exploration);
      return (await found)[0];
    } catch (error) {
      this.#worker = null;
      void worker.terminate();
      throw new DomainError('unavailable', 'The purpose could not be explored in time.', {
        cause: new Error(messageOf(error)),
      });
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}

function startThread(): Worker {
  const worker = new Worker(new URL('./cases-worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: mostMegabytes },
  });
  // `once` listens only until the time is over, and an error that nobody listens to ends the process.
  worker.on('error', () => undefined);
  // It must not keep the process.
  worker.unref();
  return worker;
}
