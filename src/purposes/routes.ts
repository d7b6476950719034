import { Purpose } from '../core/purpose.ts';
import { remarkProfile } from '../core/remarks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Problem } from '../errors.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { MessageResponse } from '../http/schema.ts';
import {
  deletePurpose,
  findPurpose,
  insertPurpose,
  listPurposes,
  updatePurpose,
} from './queries.ts';
import { PurposeList, PurposeParams, RegisteredPurpose, UpdatedPurpose } from './schema.ts';

export type PurposeRouteDeps = {
  db: Sql;
  /** Telephone numbers that no SMS will be sent to. */
  remarkNumbers: (purposes: Purpose[], pathOf: () => string) => Problem[];
};

const common = { tag: 'Purposes', auth: 'account' } as const;

/** Specification section 4.5. */
export function purposeRoutes(deps: PurposeRouteDeps): Route[] {
  const { db } = deps;
  return [register(deps), list(db), read(db), update(deps), remove(db)];
}

function noSuchPurpose(): DomainError {
  return new DomainError('not-found', 'There is no such purpose.');
}

/** A gotoPuId may mean a purpose that it will be installed with: only its own are looked at here. */
function remark(purpose: Purpose, { remarkNumbers }: PurposeRouteDeps) {
  const pathOf = () => '';
  return [...remarkProfile([purpose], undefined, pathOf), ...remarkNumbers([purpose], pathOf)];
}

function register(deps: PurposeRouteDeps): Route {
  const { db } = deps;
  return defineRoute({
    ...common,
    method: 'post',
    path: '/v2/purposes',
    summary: 'Register New Purpose',
    body: Purpose,
    response: RegisteredPurpose,
    errors: [],
    handler: async ({ account, body }) => {
      const purposeUuid = await insertPurpose(db, account.accountId, body);
      if (purposeUuid === null) throw new DomainError('unauthenticated', 'The account is gone.');
      return { purposeUuid, timestamp: Date.now(), warnings: remark(body, deps) };
    },
  });
}

function list(db: Sql): Route {
  return defineRoute({
    ...common,
    method: 'get',
    path: '/v2/purposes',
    summary: 'Get Purposes',
    description: 'Also with a slash behind it: the purpose identifier left empty.',
    response: PurposeList,
    errors: [],
    handler: async ({ account }) => {
      const purposes = await listPurposes(db, account.accountId);
      return {
        purposeUuids: purposes.map(({ id }) => id),
        purposeNames: purposes.map(({ name }) => name),
        timestamp: Date.now(),
      };
    },
  });
}

function read(db: Sql): Route {
  return defineRoute({
    ...common,
    method: 'get',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Get Purpose',
    params: PurposeParams,
    response: Purpose,
    errors: [404],
    handler: async ({ account, params }) => {
      const purpose = await findPurpose(db, account.accountId, params.purposeUuid);
      if (!purpose) throw noSuchPurpose();
      return purpose;
    },
  });
}

function update(deps: PurposeRouteDeps): Route {
  const { db } = deps;
  return defineRoute({
    ...common,
    method: 'put',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Update Purpose',
    description: 'Installed profiles keep the copy they were installed with.',
    params: PurposeParams,
    body: Purpose,
    response: UpdatedPurpose,
    errors: [404],
    handler: async ({ account, params, body }) => {
      const updated = await updatePurpose(db, account.accountId, params.purposeUuid, body);
      if (!updated) throw noSuchPurpose();
      return { timestamp: Date.now(), warnings: remark(body, deps) };
    },
  });
}

function remove(db: Sql): Route {
  return defineRoute({
    ...common,
    method: 'delete',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Delete Purpose',
    description: 'Installed profiles keep their copy.',
    params: PurposeParams,
    response: MessageResponse,
    errors: [404],
    handler: async ({ account, params }) => {
      const deleted = await deletePurpose(db, account.accountId, params.purposeUuid);
      if (!deleted) throw noSuchPurpose();
      return { timestamp: Date.now(), message: 'The purpose was deleted.' };
    },
  });
}
