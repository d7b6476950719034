import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { timestamp } from '../http/schema.ts';

const listed = 1_000;

export const LabelList = z.object({
  labels: z.array(
    z
      .object({ label: z.string(), devices: z.int().meta({ description: 'How many have it.' }) })
      .meta({ id: 'LabelCount' }),
  ),
  timestamp,
});
export type LabelList = z.infer<typeof LabelList>;

/** What an account's devices are labelled with. */
export function labelsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listDeviceLabels',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/labels',
    summary: 'List the labels of devices',
    description: `In alphabetical order; of more than ${listed} those that most devices have.`,
    tag: 'Devices',
    auth: 'account',
    errors: [],
    response: LabelList,
    room: 1_048_576,
    handler: async ({ account, request }) => {
      const labels = await listLabels(db, account.accountId, labelsOf(account));
      return { labels, timestamp: request.now() };
    },
  });
}

/** `within`: only of devices that have one of these; null: of any. */
async function listLabels(db: Sql, accountId: number, within: readonly string[] | null) {
  const { rows } = await db.query<{ label: string; devices: number }>(
    `
      select * from (
        select label, count(*)::integer as devices
          from device
         cross join unnest(labels) as label
         where account_id = $1 and ($2::text[] is null or labels && $2)
         group by label
         order by devices desc, label
         limit $3) most
       order by lower(label), label`,
    [accountId, within, listed],
  );
  return rows;
}
