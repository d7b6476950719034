import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { Purpose } from '../contract/purpose.ts';
import { Position } from '../contract/values.ts';
import { DomainError } from '../errors.ts';
import { timestamp } from '../http/schema.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { messageOf } from '../lib/thrown.ts';

const val = z.union([z.number(), Position]);
const Place = z.object({ puId: z.int(), stId: z.int() });
const EventPlace = Place.extend({ evId: z.int() });

/** See `WitnessStep`. */
const Steps = z.array(
  z
    .object({
      afterMs: z.number(),
      sId: z.string().optional(),
      val: val.optional(),
      times: z.int().optional(),
    })
    .meta({
      id: 'WitnessStep',
      description:
        'What happens after `afterMs`: a measurement, `times` times (1 if absent), each so much later than the one ' +
        'before; without `sId` only time passes.',
    }),
);

const Claim = z
  .object({ is: z.enum(['witnessed', 'never', 'unknown']), steps: Steps.optional() })
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
    warnings: z.array(
      z.object({
        path: z.string(),
        code: z.string(),
        message: z.string(),
        witness: Steps.optional(),
      }),
    ),
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

/** Threads at a time, of all accounts: each keeps a core busy. */
const mostThreads = 1;
/** Answers that are kept: they depend on the purpose alone. */
const mostKept = { max: 200, maxSize: 4_194_304 };
const mostWaiting = { maxWaiting: 100, maxWaitingOfKey: 4 };
/** A thread takes a fraction of a second; on a busy machine more. */
const mostMs = 10_000;
const waitMs = 5_000;
const mostMegabytes = 128;

type Cases = Omit<PurposeCases, 'timestamp'>;
type Exploring = (accountId: number, purpose: Purpose) => Promise<Cases>;

/**
 * Explores purposes in threads of bounded number, time and memory; accounts take turns. Throws `too-many-requests` and
 * `unavailable`.
 */
export function createExploring(): Exploring {
  const threads = new FairBudget({
    most: mostThreads,
    mostOfKey: () => mostThreads,
    ...mostWaiting,
  });
  const kept = new LRUCache<string, Cases>({
    ...mostKept,
    sizeCalculation: (cases, name) => JSON.stringify(cases).length + name.length,
  });
  return async (accountId, purpose) => {
    const name = createHash('sha256').update(JSON.stringify(purpose)).digest('base64');
    const known = kept.get(name);
    if (known) return known;
    const leave = await threads.take(`${accountId}`, {
      withinMs: waitMs,
      refuse: () =>
        new DomainError(
          'too-many-requests',
          'Other purposes are being explored: try again later.',
          {
            retryAfterSeconds: waitMs / 1_000,
          },
        ),
    });
    try {
      const cases = await exploreInThread(purpose);
      kept.set(name, cases);
      return cases;
    } finally {
      leave();
    }
  };
}

async function exploreInThread(purpose: Purpose): Promise<Cases> {
  const worker = new Worker(new URL('./cases-worker.ts', import.meta.url), {
    workerData: purpose,
    resourceLimits: { maxOldGenerationSizeMb: mostMegabytes },
  });
  // `once` listens only until the time is over, and an error that nobody listens to ends the process.
  worker.on('error', () => undefined);
  try {
    const signal = AbortSignal.timeout(mostMs);
    const [explored] = (await once(worker, 'message', { signal })) as [PurposeCases];
    return explored;
  } catch (error) {
    throw new DomainError('unavailable', 'The purpose could not be explored in time.', {
      cause: new Error(messageOf(error)),
    });
  } finally {
    void worker.terminate();
  }
}
