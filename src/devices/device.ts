import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { compileProfile } from '../engine/compile.ts';
import {
  type AroundEvaluation,
  describeEvaluation,
  Description,
} from '../engine/describe-evaluation.ts';
import { type AskedAt, explain } from '../engine/explain.ts';
import type { LastSeen } from '../engine/last-seen.ts';
import { listenedSince } from '../engine/listening.ts';
import { replay } from '../engine/replay.ts';
import { startRuntime } from '../engine/runtime.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams, timestamp } from '../http/schema.ts';
import { nextTurn } from '../lib/in-turns.ts';
import { findEvaluation } from './find-evaluation.ts';
import { noSuchDevice } from './no-such-device.ts';

const Evaluation = z.object({
  engine: z.enum(['service', 'device', 'none']).meta({
    description: 'Who evaluates the current profile; `none` where there is no current profile.',
  }),
  evaluation: Description.nullable().meta({
    description: 'Null unless the service evaluates.',
  }),
  timestamp,
});

/** The newest measurement of each of these senses, by device. */
export type FindNewestOf = (
  sql: Sql,
  wanted: { deviceId: number; sId: string }[],
) => Promise<ReadonlyMap<number, LastSeen>>;

/**
 * What stands outside a device's evidence: alarms of its events, its late measurements, and when its connector
 * listened.
 */
export type FindAround = (
  sql: Sql,
  of: {
    deviceId: number;
    pId: string;
    newest: LastSeen;
    /** What ended before made no difference; null: nothing does. */
    listenedSinceTs: number | null;
  },
) => Promise<Omit<AroundEvaluation & AskedAt, 'nowTs'>>;

export type EvaluationRouteDeps = { db: Sql; findNewest: FindNewestOf; findAround?: FindAround };

/** Why an event has not fired yet: what each live event's causes have collected and still lack. */
export function evaluationRoute({ db, findNewest, findAround }: EvaluationRouteDeps): Route {
  return defineRoute({
    name: 'explainEvaluation',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/evaluation',
    summary: 'Explain where the purpose engine stands',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: Evaluation,
    errors: [404],
    room: 8_388_608,
    handler: async ({ account, params, request }) => {
      const timestamp = request.receivedTs;
      const row = await findEvaluation(db, account.accountId, params.deviceAuthUuid);
      if (!row) throw noSuchDevice();
      const { device_id: deviceId, engine, profile_id: pId, purposes, runtime } = row;
      if (!pId || !purposes || engine !== 'service') {
        return { engine: engine ?? ('none' as const), evaluation: null, timestamp };
      }
      // With a large profile reading, compiling and explaining take a few milliseconds each.
      await nextTurn();
      const profile = compileProfile(pId, purposes);
      await nextTurn();
      const wanted = [...profile.senses.keys()].map((sId) => ({ deviceId, sId }));
      const seen = (await findNewest(db, wanted)).get(deviceId) ?? {};
      await nextTurn();
      const stood = runtime
        ? await replay(profile, runtime, row.evidence_log ?? [], nextTurn)
        : startRuntime(profile, timestamp);
      await nextTurn();
      const around = {
        ...(await findAround?.(db, {
          deviceId,
          pId,
          newest: seen,
          listenedSinceTs: listenedSince(stood),
        })),
        nowTs: timestamp,
      };
      const explanation = explain(profile, stood, seen, around);
      await nextTurn();
      const evaluation = describeEvaluation(profile, explanation, around);
      await nextTurn();
      return { engine, evaluation, timestamp };
    },
  });
}
