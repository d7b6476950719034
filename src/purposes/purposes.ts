import { Purpose } from '../contract/purpose.ts';
import { checkPurposeSizes } from '../contract/sizes.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { stream } from '../http/answer.ts';
import { begin } from '../http/begin.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { MessageResponse } from '../http/schema.ts';
import { createInTurn } from '../quotas/in-turn.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { storeWithin } from '../quotas/store-within.ts';
import { writePurposeList } from './list-purposes.ts';
import {
  deletePurpose,
  findGrowth,
  findPurpose,
  insertPurpose,
  toText,
  updatePurpose,
} from './queries.ts';
import {
  examplePurpose,
  PurposeList,
  PurposeParams,
  RegisteredPurpose,
  UpdatedPurpose,
} from './schema.ts';
import { warnOf, type WarnOfNumbers, warnOfPurpose } from './warn.ts';

export type PurposeRouteDeps = {
  db: Database;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  warnOfNumbers: WarnOfNumbers;
};

const common = { tag: 'Purposes', auth: 'account' } as const;

/** Specification section 4.5. */
export function purposeRoutes(deps: PurposeRouteDeps): Route[] {
  return [register(deps), list(deps), read(deps), update(deps), remove(deps)];
}

function noSuchPurpose(): DomainError {
  return new DomainError('not-found', 'There is no such purpose.');
}

function register(deps: PurposeRouteDeps): Route {
  const { db, quotas, limitsOf } = deps;
  const inTurn = createInTurn(3);
  return defineRoute({
    ...common,
    name: 'registerPurpose',
    scope: 'purposes:write',
    method: 'post',
    path: '/v2/purposes',
    summary: 'Register New Purpose',
    takesKey: true,
    body: Purpose,
    example: examplePurpose,
    response: RegisteredPurpose,
    errors: [403],
    warnOf,
    handler: async ({ account, body, request, warnings, once }) => {
      const { accountId } = account;
      refuseOversized(checkPurposeSizes(body, limitsOf(accountId)));
      const text = toText(body);
      const adding = { purposes: 1, purposeBytes: text.bytes };
      const made = await once<{ purposeUuid: string; timestamp: number }>((keep) => {
        const store = async (sql: Sql) => {
          const purposeUuid = await insertPurpose(sql, accountId, text, quotas);
          const made = purposeUuid === null ? null : { purposeUuid, timestamp: request.now() };
          if (made) await keep?.(sql, made);
          return made;
        };
        const storeOnce = () => (keep ? db.transaction(store) : store(db));
        return inTurn(accountId, () => storeWithin(db, { accountId, quotas, adding }, storeOnce));
      });
      return { ...made, warnings: await warnOfPurpose(body, warnings, deps.warnOfNumbers) };
    },
  });
}

function list({ db }: PurposeRouteDeps): Route {
  return defineRoute({
    ...common,
    name: 'listPurposes',
    scope: 'purposes:read',
    method: 'get',
    path: '/v2/purposes',
    summary: 'Get Purposes',
    description: 'Also with a slash behind it: the purpose identifier left empty.',
    response: PurposeList,
    errors: [],
    room: 4_194_304,
    handler: async ({ account, request }) => {
      const list = await begin(writePurposeList(db, account.accountId, request.receivedTs));
      return stream('application/json', list);
    },
  });
}

function read({ db }: PurposeRouteDeps): Route {
  return defineRoute({
    ...common,
    name: 'getPurpose',
    scope: 'purposes:read',
    method: 'get',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Get Purpose',
    params: PurposeParams,
    response: Purpose,
    errors: [404],
    room: 4_194_304,
    handler: async ({ account, params }) => {
      const purpose = await findPurpose(db, account.accountId, params.purposeUuid);
      if (!purpose) throw noSuchPurpose();
      return purpose;
    },
  });
}

function update(deps: PurposeRouteDeps): Route {
  const { db, quotas, limitsOf } = deps;
  return defineRoute({
    ...common,
    name: 'updatePurpose',
    scope: 'purposes:write',
    method: 'put',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Update Purpose',
    description: 'Installed profiles keep the copy they were installed with.',
    params: PurposeParams,
    body: Purpose,
    example: examplePurpose,
    response: UpdatedPurpose,
    errors: [403, 404],
    warnOf,
    handler: async ({ account, params, body, request, warnings }) => {
      const { accountId } = account;
      const { purposeUuid } = params;
      refuseOversized(checkPurposeSizes(body, limitsOf(accountId)));
      const text = toText(body);
      const adding = { purposeBytes: 0 };
      await storeWithin(db, { accountId, quotas, adding }, async () => {
        if (await updatePurpose(db, accountId, purposeUuid, text, quotas)) return true;
        const growth = await findGrowth(db, accountId, purposeUuid, text);
        if (growth === null) throw noSuchPurpose();
        adding.purposeBytes = growth;
        return null;
      });
      const all = await warnOfPurpose(body, warnings, deps.warnOfNumbers);
      return { timestamp: request.now(), warnings: all };
    },
  });
}

function remove({ db }: PurposeRouteDeps): Route {
  return defineRoute({
    ...common,
    name: 'deletePurpose',
    scope: 'purposes:write',
    method: 'delete',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Delete Purpose',
    description: 'Installed profiles keep their copy.',
    params: PurposeParams,
    response: MessageResponse,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const deleted = await deletePurpose(db, account.accountId, params.purposeUuid);
      if (!deleted) throw noSuchPurpose();
      return { timestamp: request.now(), message: 'The purpose was deleted.' };
    },
  });
}
