import { z } from 'zod';
import { doneBy, insertEntry } from '../audit/audit.ts';
import { checkPurposeSizes, Purpose } from '../contract/purpose.ts';
import {
  joinWarnings,
  Warned,
  warned,
  type Warning,
  warnOfActions,
  warnOfNumberForms,
  warnOfUnknown,
} from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { listWarningsYielding, warnOfPolygons } from '../engine/warnings.ts';
import { DomainError } from '../errors.ts';
import { stream } from '../http/answer.ts';
import { begin } from '../http/errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, MessageResponse, timestamp, uuidParam } from '../http/schema.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import {
  createFairRunner,
  limitOf,
  type LimitsOf,
  lockUsage,
  refuseOversized,
  storeWithin,
} from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { type Exploring, PurposeCases } from './cases.ts';
import {
  checkTag,
  findVersions,
  noSuchVersion,
  purposeVersions,
  ReasonQuery,
  reasonOf,
  tagOf,
  versionNumber,
  versionRoutes,
  type WrittenBy,
  writtenValues,
} from '../versions/versions.ts';

type PurposeRouteDeps = {
  db: Database;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  warnOfNumbers: WarnOfNumbers;
  exploring: Pick<Exploring, 'listCases' | 'warnOf'>;
};

const common = { tag: 'Purposes', auth: 'account' } as const;

/** Specification section 4.5. */
export function purposeRoutes(deps: PurposeRouteDeps): Route[] {
  const { db } = deps;
  return [
    register(deps),
    list(deps),
    read(deps),
    readCases(deps),
    update(deps),
    restore(deps),
    remove(deps),
    ...versionRoutes({
      ...common,
      db,
      versioned: purposeVersions,
      path: '/v2/purposes/{purposeUuid}',
      params: PurposeParams,
      name: 'PurposeVersion',
      scope: 'purposes:read',
      called: 'a purpose',
      body: Purpose,
      noSuchThing: noSuchPurpose,
    }),
  ];
}

function noSuchPurpose(): DomainError {
  return new DomainError('not-found', 'There is no such purpose.');
}

function register(deps: PurposeRouteDeps): Route {
  const { db, quotas, limitsOf } = deps;
  const runFairly = createFairRunner(3);
  return defineRoute({
    ...common,
    name: 'registerPurpose',
    scope: 'purposes:write',
    method: 'post',
    path: '/v2/purposes',
    summary: 'Register New Purpose',
    takesKey: true,
    query: ReasonQuery,
    body: Purpose,
    example: examplePurpose,
    response: RegisteredPurpose,
    errors: [403],
    warnOf,
    handler: async ({ account, query, body, request, warnings, once }) => {
      const { accountId } = account;
      const by = { ...doneBy(account, request), reason: reasonOf(request, query) };
      refuseOversized(checkPurposeSizes(body, limitsOf(accountId)));
      const text = toText(body);
      const adding = { purposes: 1, purposeBytes: text.bytes };
      const made = await once<{ purposeUuid: string; timestamp: number }>((keep) => {
        const store = async (sql: Sql) => {
          const purposeUuid = await insertPurpose(sql, accountId, text, by, quotas);
          const made = purposeUuid === null ? null : { purposeUuid, timestamp: request.now() };
          if (made) await keep?.(sql, made);
          return made;
        };
        const storeOnce = () => (keep ? db.transaction(store) : store(db));
        return runFairly(accountId, () =>
          storeWithin(db, { accountId, quotas, adding }, storeOnce),
        );
      });
      return { ...made, ...(await warnOfPurpose(deps, accountId, body, warnings)) };
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
    description: 'Also with a trailing slash, that is, with an empty purpose identifier.',
    response: PurposeList,
    errors: [],
    answerBytes: 4_194_304,
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
    responseHeaders: { ETag: 'Its version, for `If-Match`: `"3"`.' },
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account, params, request }) => {
      const purpose = await findPurpose(db, account.accountId, params.purposeUuid);
      if (!purpose) throw noSuchPurpose();
      request.setHeader('ETag', tagOf(purpose.version));
      return purpose.body;
    },
  });
}

function readCases({ db, exploring }: PurposeRouteDeps): Route {
  return defineRoute({
    ...common,
    name: 'getPurposeCases',
    scope: 'purposes:read',
    method: 'get',
    path: '/v2/purposes/{purposeUuid}/cases',
    summary: 'Get Cases of a Purpose',
    description:
      'What the purpose by itself can do, found by trying it: for each event a short stream that fires it and one ' +
      'that ends its alarm, how each state is reached and left, what never happens, and the streams as tests for ' +
      'firmware. The answer depends on the purpose alone.',
    params: PurposeParams,
    response: PurposeCases,
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account: { accountId }, params, request }) => {
      const purpose = await findPurpose(db, accountId, params.purposeUuid);
      if (!purpose) throw noSuchPurpose();
      const cases = await exploring.listCases(accountId, purpose.body);
      return { ...cases, timestamp: request.now() };
    },
  });
}

function update(deps: PurposeRouteDeps): Route {
  const { limitsOf } = deps;
  return defineRoute({
    ...common,
    name: 'updatePurpose',
    scope: 'purposes:write',
    method: 'put',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Update Purpose',
    description:
      'Installed profiles keep the copy that they were installed with. What was there before is kept as a version; a ' +
      'request that changes nothing makes none.',
    hasTag: true,
    params: PurposeParams,
    query: ReasonQuery,
    body: Purpose,
    example: examplePurpose,
    response: UpdatedPurpose,
    responseHeaders: { ETag: 'The version that is there now, for `If-Match`.' },
    errors: [403, 404],
    warnOf,
    handler: async ({ account, params, query, body, request, warnings }) => {
      refuseOversized(checkPurposeSizes(body, limitsOf(account.accountId)));
      const { purposeUuid } = params;
      await change(deps, { account, request, purposeUuid, reason: reasonOf(request, query) }, body);
      const told = await warnOfPurpose(deps, account.accountId, body, warnings);
      return { timestamp: request.now(), ...told };
    },
  });
}

function restore(deps: PurposeRouteDeps): Route {
  const { db, limitsOf } = deps;
  return defineRoute({
    ...common,
    name: 'restorePurposeVersion',
    scope: 'purposes:write',
    method: 'post',
    path: '/v2/purposes/{purposeUuid}/versions/{version}/restore',
    summary: 'Restore a version of a purpose',
    description:
      'Makes a new version with the content of that one. Installed profiles keep the copy that they were installed ' +
      'with. 409 if a purpose may no longer be like that.',
    hasTag: true,
    params: PurposeParams.extend({ version: versionNumber }),
    query: ReasonQuery,
    response: RestoredPurpose,
    responseHeaders: { ETag: 'The version that is there now, for `If-Match`.' },
    errors: [403, 404, 409],
    handler: async ({ account, params, query, request }) => {
      const { accountId } = account;
      const { purposeUuid, version } = params;
      const found = await findVersions(db, purposeVersions, [accountId, purposeUuid], [version]);
      const text = found.get(version);
      if (text === undefined) throw noSuchVersion(version);
      const read = Purpose.safeParse(JSON.parse(text));
      if (!read.success)
        throw new DomainError('conflict', `Version ${version} is no longer a valid purpose.`);
      refuseOversized(checkPurposeSizes(read.data, limitsOf(accountId)));
      const reason = reasonOf(request, query);
      await change(deps, { account, request, purposeUuid, reason, restored: version }, read.data);
      const told = await warnOfPurpose(deps, accountId, read.data, []);
      return { timestamp: request.now(), ...told };
    },
  });
}

type Change = {
  account: Account;
  request: RequestInfo;
  purposeUuid: string;
  reason: string | undefined;
  /** The version whose content it gets again. */
  restored?: number;
};

/** Replaces a purpose within the quota, and sets the `ETag`. Throws `not-found` and `precondition-failed`. */
async function change(
  { db, quotas }: PurposeRouteDeps,
  { account, request, purposeUuid, reason, restored }: Change,
  purpose: Purpose,
): Promise<void> {
  const { accountId } = account;
  const text = toText(purpose);
  const by = { ...doneBy(account, request), reason };
  const adding = { purposeBytes: 0 };
  const version = await storeWithin(db, { accountId, quotas, adding }, () =>
    db.transaction(async (tx) => {
      await lockUsage(tx, accountId);
      const found = await findCurrent(tx, accountId, purposeUuid, text);
      if (found === null) throw noSuchPurpose();
      checkTag(request, found.version);
      if (found.isSame) return found.version;
      adding.purposeBytes = found.growth;
      const version = await updatePurpose(tx, { accountId, purposeUuid, quotas, by }, text);
      if (version === null) return null;
      const told = { purposeUuid, name: text.name, version };
      const details = { ...told, ...(restored && { restored }), ...(reason && { reason }) };
      await insertEntry(tx, accountId, { kind: 'purpose-changed', ...by, details });
      return version;
    }),
  );
  request.setHeader('ETag', tagOf(version));
}

function remove({ db }: PurposeRouteDeps): Route {
  return defineRoute({
    ...common,
    name: 'deletePurpose',
    scope: 'purposes:write',
    method: 'delete',
    path: '/v2/purposes/{purposeUuid}',
    summary: 'Delete Purpose',
    description: 'With its versions. Installed profiles keep their copy.',
    hasTag: true,
    params: PurposeParams,
    response: MessageResponse,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      await db.transaction(async (tx) => {
        await lockUsage(tx, accountId);
        const purpose = await findPurpose(tx, accountId, params.purposeUuid);
        if (!purpose) throw noSuchPurpose();
        checkTag(request, purpose.version);
        await tx.query('delete from purpose where id = $1', [params.purposeUuid]);
        const details = { purposeUuid: params.purposeUuid, name: purpose.name };
        const entry = { kind: 'purpose-removed', ...doneBy(account, request), details } as const;
        await insertEntry(tx, accountId, entry);
      });
      return { timestamp: request.now(), message: 'The purpose was deleted.' };
    },
  });
}

const PurposeParams = z.object({
  purposeUuid: uuidParam.meta({ example: exampleIds.purpose }),
});

/** Specification section 4.5: the answer of Register New Purpose. */
const RegisteredPurpose = z.object({
  purposeUuid: z.guid().meta({ example: exampleIds.purpose }),
  timestamp,
  ...Warned,
});

const UpdatedPurpose = z.object({ timestamp, ...Warned });
const RestoredPurpose = UpdatedPurpose.extend({});

/** Names and identifiers are in the same order; a purpose without a name has an empty one. */
const PurposeList = z.object({
  purposeUuids: z.array(z.guid()),
  purposeNames: z.array(z.string()),
  timestamp,
});

/** For the API reference: an alarm while it is too warm, without notifications. */
const examplePurpose: z.input<typeof Purpose> = {
  puId: 1,
  name: 'Cold room',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'Watched',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          actions: { alarm: true },
          causes: [{ sId: '0x01', threshold: { forMs: 60_000 }, thresholds: { isGt: 8 } }],
        },
      ],
    },
  ],
};

/** Warns of telephone numbers that no SMS will be sent to. */
type WarnOfNumbers = (purposes: Purpose[], pathOf: () => string) => Warning[];

const pathOf = () => '';

/** Warnings that become errors in strict mode. */
function warnOf(schema: z.ZodType, sent: unknown, purpose?: Purpose): Warning[] {
  const ofNumbers = purpose ? warnOfNumberForms([purpose], pathOf) : [];
  return joinWarnings(warnOfUnknown(schema, sent), ofNumbers);
}

/**
 * All warnings of a purpose. It is checked alone, so a gotoPuId may refer to a purpose that will be installed with it.
 */
async function warnOfPurpose(
  { warnOfNumbers, exploring }: Pick<PurposeRouteDeps, 'warnOfNumbers' | 'exploring'>,
  accountId: number,
  purpose: Purpose,
  before: Warning[],
): Promise<Warned> {
  const explored = await exploring.warnOf(accountId, { purposes: [purpose], pathOf });
  const warnings = await listWarningsYielding([purpose], undefined, pathOf, yieldToEventLoop);
  const ofParts = [warnOfPolygons, warnOfActions].map((warnOf) => warnOf([purpose], pathOf));
  const ofNumbers = warnOfNumbers([purpose], pathOf);
  return warned(joinWarnings(before, warnings, ...ofParts, ofNumbers, explored ?? []), explored);
}

type PurposeQuotas = Pick<QuotaSettings, 'purposes' | 'purposeBytes'>;

/** A purpose as it is stored. */
type PurposeText = { name: string; body: string; bytes: number };

function toText(purpose: Purpose): PurposeText {
  const body = JSON.stringify(purpose);
  return { name: nameOf(purpose), body, bytes: Buffer.byteLength(body) };
}

/** The new purpose's identifier; null if that exceeds a quota, or if the account is gone. */
async function insertPurpose(
  db: Sql,
  accountId: number,
  { name, body, bytes }: PurposeText,
  by: WrittenBy,
  quotas: PurposeQuotas,
): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `
      with allowed as (
        select ${limitOf('$1', 'purposes', '$5')} as purposes,
               ${limitOf('$1', 'purposeBytes', '$6')} as bytes
      ), counted as (
        insert into account_usage as u (account_id, purposes, purpose_bytes)
        select account.id, 1, $4::bigint
          from account, allowed
         where account.id = $1 and account.removed_at is null and $4::bigint <= allowed.bytes
        on conflict (account_id) do update
           set purposes = u.purposes + 1, purpose_bytes = u.purpose_bytes + excluded.purpose_bytes
         where not u.is_closed and u.purposes < (select purposes from allowed)
           and u.purpose_bytes + excluded.purpose_bytes <= (select bytes from allowed)
        returning account_id
      )
      insert into purpose
        (account_id, name, body, bytes, changed_at, changed_by, changed_session, change_reason)
      select account_id, $2, $3::text::json, $4, ms_to_timestamp($7), $8, $9, $10 from counted
      returning id`,
    [accountId, name, body, bytes, quotas.purposes, quotas.purposeBytes, ...writtenValues(by)],
  );
  return rows[0]?.id ?? null;
}

/** Null if the account has no such purpose. */
async function findPurpose(
  db: Sql,
  accountId: number,
  purposeId: string,
): Promise<{ body: Purpose; name: string; version: number } | null> {
  const { rows } = await db.query<{ body: Purpose; name: string; version: number }>(
    'select body, name, version from purpose where id = $2 and account_id = $1',
    [accountId, purposeId],
  );
  return rows[0] ?? null;
}

/** What a change would replace, and by how many bytes it would grow; null if the account has no such purpose. */
async function findCurrent(
  tx: Sql,
  accountId: number,
  purposeId: string,
  { body, bytes }: PurposeText,
): Promise<{ version: number; isSame: boolean; growth: number } | null> {
  const { rows } = await tx.query<{ version: number; isSame: boolean; growth: number }>(
    `select version, body::text = $3 as "isSame", $4::integer - bytes as growth
       from purpose where id = $2 and account_id = $1`,
    [accountId, purposeId, body, bytes],
  );
  return rows[0] ?? null;
}

type PurposeUpdate = {
  accountId: number;
  purposeUuid: string;
  quotas: PurposeQuotas;
  by: WrittenBy;
};

/** The new version; null if it would grow over the quota. An update that does not grow it is always allowed. */
async function updatePurpose(
  tx: Sql,
  { accountId, purposeUuid, quotas, by }: PurposeUpdate,
  { name, body, bytes }: PurposeText,
): Promise<number | null> {
  const { rows } = await tx.query<{ version: number }>(
    `
      with counted as (
        update account_usage u
           set purpose_bytes = u.purpose_bytes + $5 - p.bytes
          from purpose p
         where u.account_id = $1 and p.id = $2 and p.account_id = $1
           and ($5 <= p.bytes
                or u.purpose_bytes + $5 - p.bytes <= ${limitOf('$1', 'purposeBytes', '$6')})
        returning u.account_id
      )
      update purpose p
         set name = $3, body = $4::text::json, bytes = $5, version = p.version + 1,
             changed_at = ms_to_timestamp($7), changed_by = $8, changed_session = $9,
             change_reason = $10
        from counted
       where p.id = $2 and p.account_id = counted.account_id
      returning p.version`,
    [accountId, purposeUuid, name, body, bytes, quotas.purposeBytes, ...writtenValues(by)],
  );
  return rows[0]?.version ?? null;
}

/** PostgreSQL's text type takes every character except NUL. */
const nameOf = ({ name }: Purpose) => (name ?? '').replaceAll('\0', '\uFFFD');

/** Limits of what is in memory at once: the number of names, and their bytes. */
const pageNames = 1_000;
const pageBytes = 1_048_576;

/** The answer of Get Purposes, specification section 4.5, written as it is read. */
async function* writePurposeList(
  db: Sql,
  accountId: number,
  timestamp: number,
): AsyncGenerator<string> {
  const ids = await listPurposeIds(db, accountId);
  yield `{"purposeUuids":${JSON.stringify(ids)},"purposeNames":[`;
  for (let from = 0; from < ids.length;) {
    const names = await listNames(db, accountId, ids.slice(from, from + pageNames));
    yield (from === 0 ? '' : ',') + JSON.stringify(names).slice(1, -1);
    from += names.length;
  }
  yield `],"timestamp":${timestamp}}`;
}

/** In the order of registration. */
async function listPurposeIds(db: Sql, accountId: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select id from purpose where account_id = $1 order by created_at, id',
    [accountId],
  );
  return rows.map(({ id }) => id);
}

/**
 * The first names of these that fit into the page's bytes, at least one. A purpose that was removed meanwhile gets an
 * empty name, so that the others keep their positions.
 */
async function listNames(db: Sql, accountId: number, purposeIds: string[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `
      select coalesce(name, '') as name
        from (
          select p.name, wanted.place,
                 sum(coalesce(octet_length(p.name), 0)) over (order by wanted.place)
                   - coalesce(octet_length(p.name), 0) as before
            from unnest($2::uuid[]) with ordinality as wanted (id, place)
            left join purpose p on p.id = wanted.id and p.account_id = $1) named
       where before < ${pageBytes}
       order by place`,
    [accountId, purposeIds],
  );
  return rows.map(({ name }) => name);
}
