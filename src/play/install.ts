import { z } from 'zod';
import { type DoneBy, doneBy } from '../audit/audit.ts';
import type { Purpose } from '../contract/purpose.ts';
import { Warned } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { listFilteredDevices } from '../devices/select.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { deviceUuid, exampleIds, timestamp } from '../http/schema.ts';
import { ReasonQuery, reasonOf } from '../versions/versions.ts';
import { BacktestParams } from './schema.ts';
import { findToInstall, noSuchBacktest, noteInstalled, ownerOf, type ToInstall } from './store.ts';

/** Installs purposes on devices, as `POST /v2/devices/profile` does. `also` runs in the transaction that does it. */
export type InstallCandidate = (
  installer: {
    accountId: number;
    labels: readonly string[] | null;
    by: DoneBy & { reason?: string | undefined };
  },
  asked: { deviceAuthUuids: string[]; purposeUuids: string[]; purposes: Purpose[] },
  also: (tx: Sql, pId: string) => Promise<void>,
) => Promise<{ pId: string } & Warned>;

type InstallDeps = { db: Database; install: InstallCandidate };

const Installed = z.object({
  timestamp,
  state: z.literal('pending'),
  pId: z.guid().meta({ example: exampleIds.profile }),
  failed: z.array(
    z
      .object({ deviceAuthUuid: deviceUuid, reason: z.literal('no-such-device') })
      .meta({ id: 'BacktestNotInstalled' }),
  ),
  ...Warned,
});

/** Another request has installed the candidate. */
class IsInstalled extends Error {}

/** Installs the candidate of a backtest on its devices, once. */
export function installRoute({ db, install }: InstallDeps): Route {
  return defineRoute({
    name: 'installBacktest',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/backtests/{backtestId}/install',
    summary: 'Install the candidate of a backtest',
    description:
      'Does what `POST /v2/devices/profile` does, with the purposes as they were played, on the devices of the backtest. ' +
      'Repeated, it installs nothing, and answers the same `pId`. 409 until the backtest has played all devices, and ' +
      'if it gave up all; those that it gave up beside others get the profile, too.',
    tag: 'Backtests',
    auth: 'account',
    params: BacktestParams,
    query: ReasonQuery,
    response: Installed,
    errors: [403, 404, 409],
    answerBytes: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const { accountId } = account;
      const labels = labelsOf(account);
      const find = async () => {
        const found = await findToInstall(db, ownerOf(account), params.backtestId);
        if (!found) throw noSuchBacktest();
        return found;
      };
      const found = await find();
      if (found.state !== 'done')
        throw new DomainError('conflict', 'The backtest has not played all devices.');
      if (!found.wasPlayed)
        throw new DomainError(
          'conflict',
          'All devices of the backtest were given up: nothing was played.',
        );
      const there = await listFilteredDevices(db, accountId, { uuids: found.devices, labels });
      const by = { ...doneBy(account, request), reason: reasonOf(request, query) };
      const { pId, ...warned } = await installOnce(found, async () => {
        if (there.length === 0)
          throw new DomainError('not-found', 'None of the devices of the backtest is left.');
        const asked = {
          deviceAuthUuids: there.map(({ uuid }) => uuid),
          purposeUuids: [],
          purposes: found.candidate,
        };
        return install({ accountId, labels, by }, asked, async (tx, installed) => {
          if (!(await noteInstalled(tx, found.jobId, installed))) throw new IsInstalled();
        });
      }).catch(async (error: unknown) => {
        if (!(error instanceof IsInstalled)) throw error;
        return installOnce(await find(), () => Promise.reject(noSuchBacktest()));
      });
      const known = new Set(there.map(({ uuid }) => uuid));
      const failed = found.devices
        .filter((uuid) => !known.has(uuid))
        .map((uuid) => ({ deviceAuthUuid: uuid, reason: 'no-such-device' as const }));
      return { timestamp: request.now(), state: 'pending' as const, pId, failed, ...warned };
    },
  });
}

const installOnce = async (
  { pId }: ToInstall,
  install: () => Promise<{ pId: string } & Warned>,
): Promise<{ pId: string } & Warned> => (pId === null ? install() : { pId, warnings: [] });
