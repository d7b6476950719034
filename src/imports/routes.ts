import { z } from 'zod';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { exampleIds, timestamp } from '../http/schema.ts';
import { csvType, ndjsonType } from '../lib/text.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { type ImportPorts, ImportRun, type Receipt } from './imports.ts';
import type { Clock, MonotonicClock } from '../lib/clock-readings.ts';

type ImportRoutesDeps = ImportPorts & {
  db: Database;
  clock: Clock;
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  /** The account's quota `imports`. */
  limitOf: (accountId: number) => number;
};

/** An import begins within this time or is refused. */
const waitMs = 10_000;
/** How many imports of all accounts work at once: the database has other work too. */
const parallel = 2;

const { device } = exampleIds;
const examples = {
  [csvType]: `deviceAuthUuid,sId,ts,val,lat,long\r\n${device},0x01,1795219200000,21.5,,\r\n`,
  [ndjsonType]: `{"deviceAuthUuid":"${device}","sId":"0x01","val":21.5,"ts":1795219200000}\n`,
};

/** The route that imports measurements into the history. */
export function importRoutes(deps: ImportRoutesDeps): Route[] {
  const { limitOf } = deps;
  const open = new FairBudget({ most: Infinity, mostOfKey: (account) => limitOf(Number(account)) });
  const slots = new FairBudget({ most: parallel, mostOfKey: () => parallel });
  return [
    defineRoute({
      name: 'importMeasurements',
      scope: 'data:write',
      method: 'post',
      path: '/v2/measurements/import',
      summary: 'Import measurements',
      description:
        "Stores measurements of the account's devices, one per line, in the format of `GET " +
        '/v2/measurements`. NDJSON has an object in each line; CSV starts with a header. A ' +
        'line names `deviceAuthUuid`, `sId`, `val` (or `lat` and `long`) and `ts`, in ' +
        'milliseconds or ISO 8601. The body may have any size, also with `Content-Encoding: ' +
        'gzip`; the import ends if no part of it arrives for 60 seconds. Imported measurements ' +
        'are stored, but neither evaluated nor sent to streams. They are stored in batches: if ' +
        'an import ends early, whole batches remain, and repeating it completes it.',
      tag: 'Measurements',
      errors: [400],
      auth: 'account',
      answerBytes: 1_048_576,
      takes: examples,
      response: ImportReceipt,
      handler: async ({ account, request }) => {
        const { accountId } = account;
        const refuse = () => tooMany(limitOf(accountId));
        const { signal } = request;
        const close = await open.take(`${accountId}`, { withinMs: waitMs, signal, refuse });
        const recheck = () => deps.authenticate(request.credential);
        const owner = { accountId, within: labelsOf(account) };
        const run = new ImportRun(owner, signal, { ...deps, slots, recheck });
        try {
          await run.run(request.openBody());
        } catch (error) {
          throw withProgress(error, run.receipt);
        } finally {
          close();
        }
        const { stored, repeated, rejected, errors } = run.receipt;
        const inOrder = errors.toSorted((one, other) => one.line - other.line);
        return { stored, repeated, rejected, errors: inOrder, timestamp: request.now() };
      },
    }),
  ];
}

/** Adds to the error of an import that ended early how many lines are stored. */
function withProgress(error: unknown, receipt: Receipt): unknown {
  // A body with problems is wrong from its first line on, so nothing was stored.
  if (!(error instanceof DomainError) || error.problems.length > 0) return error;
  const { code, message, problems, retryAfterSeconds, exceeded, rate } = error;
  const done = `The import ended early: ${receipt.describe()}. If you repeat it, stored lines count as repeated.`;
  return new DomainError(code, `${message} ${done}`, {
    cause: error.cause,
    problems,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(exceeded ? { exceeded } : {}),
    ...(rate ? { rate } : {}),
  });
}

function tooMany(limit: number): DomainError {
  const windowSeconds = waitMs / 1_000;
  return new DomainError(
    'too-many-requests',
    'The account has reached its number of concurrent imports.',
    {
      retryAfterSeconds: windowSeconds,
      rate: { quota: 'imports', limit, windowSeconds, resetSeconds: windowSeconds },
    },
  );
}

const count = z.int().min(0);

const ImportReceipt = z.object({
  stored: count,
  repeated: count.meta({
    description: 'Lines that were already stored; they are stored only once.',
  }),
  rejected: count,
  errors: z
    .array(
      z.object({
        line: z.int().min(1).meta({ description: 'Counted from 1; in CSV, line 1 is the header.' }),
        reason: z.string().meta({ description: 'A code, a colon and an explanation for people.' }),
      }),
    )
    .max(100)
    .meta({ description: 'Why lines were rejected; at most the first hundred.' }),
  timestamp,
});
type ImportReceipt = z.infer<typeof ImportReceipt>;
