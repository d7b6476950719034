import fastJsonPatch from 'fast-json-patch';
import { z } from 'zod';
import type { Actor, DoneBy } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { deleteInBatches, type Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { jsonText } from '../http/answer.ts';
import { defineRoute, invalid, type Route } from '../http/route.ts';
import type { RequestInfo, Scope } from '../http/request.ts';
import { cursorQuery, limitQuery, linkNext, timestamp } from '../http/schema.ts';

/**
 * Versions of what people write: who wrote each, when, why, and what it changed. The thing itself is the newest
 * version; triggers keep the former ones (`former_version`), so what an earlier program writes is kept, too.
 */

/** Who writes a version, when (`ts`, ms) and why. */
export type WrittenBy = DoneBy & { reason?: string | undefined };

/** For the columns `…_at`, `…_by`, `…_session` and `…_reason`, in this order. */
export const writtenValues = ({ ts, actor, reason }: WrittenBy): unknown[] => [
  ts,
  actor.by,
  actor.sessionId,
  reason ?? null,
];

/** A kind of thing that has versions, within one account. */
type Versioned = {
  /** The column of `former_version` that names it. */
  key: 'purpose_id' | 'device_id';
  /** Selects the newest version; `$1` is the account, `$2` the uuid in the path. */
  current: string;
};

export const purposeVersions: Versioned = {
  key: 'purpose_id',
  current: `
    select id, version, coalesce(changed_at, created_at) as made_at, changed_by as made_by,
           changed_session as session_id, change_reason as reason, name, bytes, body
      from purpose where account_id = $1 and id = $2`,
};

export const configurationVersions: Versioned = {
  key: 'device_id',
  current: `
    select id, configuration_version as version, configured_at as made_at,
           configured_by as made_by, configured_session as session_id, configured_reason as reason,
           name, octet_length(configuration::text) as bytes, configuration as body
      from device where account_id = $1 and uuid = $2`,
};

const longestReason = 500;

/** The query of routes that write a version. */
export const ReasonQuery = z.object({
  reason: z.string().max(longestReason).optional().meta({
    description:
      'Why: kept with the version, and in the audit trail. Also in the header X-Reason, as percent-encoded UTF-8.',
  }),
});

/** The reason in the query or else in the header `X-Reason`. Throws `invalid-input` for one that cannot be read. */
export function reasonOf(
  request: Pick<RequestInfo, 'header'>,
  { reason }: z.output<typeof ReasonQuery>,
): string | undefined {
  const sent = reason ?? decodeHeader(request.header('x-reason'));
  return sent === '' ? undefined : sent;
}

function decodeHeader(sent: string): string {
  const wrong = (message: string) => invalid([{ path: 'X-Reason', message }]);
  let text: string;
  try {
    text = decodeURIComponent(sent);
  } catch {
    throw wrong('expected percent-encoded UTF-8');
  }
  if (text.includes('\0')) throw wrong('expected text without U+0000');
  if (text.length > longestReason) throw wrong(`expected at most ${longestReason} characters`);
  return text;
}

/** RFC 9110 section 8.8.3: a strong tag, because the answer is the version's text to the letter. */
export const tagOf = (version: number): string => `"${version}"`;

/**
 * RFC 9110 section 13.1.1. Throws `precondition-failed` if the request may only change another version: tags are
 * compared strongly, so a weak one matches nothing. `*` holds for whatever exists.
 */
export function checkTag(request: Pick<RequestInfo, 'header'>, version: number): void {
  const sent = request.header('if-match').trim();
  if (sent === '' || sent === '*') return;
  const tags = sent.split(',').map((tag) => tag.trim());
  if (tags.includes(tagOf(version))) return;
  const message = `This is version ${version} now, which If-Match does not name. Read it again.`;
  throw new DomainError('precondition-failed', message);
}

type Row = {
  version: number;
  made_at: number;
  made_by: Actor['by'] | null;
  session_id: string | null;
  reason: string | null;
  name: string;
  bytes: number;
};

type Page = { before?: number | undefined; limit: number };

/** Newest first; null if the account has no such thing. */
async function listVersions(
  db: Sql,
  { key, current }: Versioned,
  [accountId, uuid]: readonly [number, string],
  { before, limit }: Page,
): Promise<Row[] | null> {
  const { rows } = await db.query<Row & { id: unknown }>(
    `
      with current as materialized (${current})
      select current.id, found.version, found.made_at, found.made_by, found.session_id, found.reason,
             found.name, found.bytes
        from current
        left join lateral (
          select * from (
            select version, made_at, made_by, session_id, reason, name, bytes from current
             where $3::integer is null or version < $3
            union all
            (select version, made_at, made_by, session_id, reason, name, bytes from former_version
              where ${key} = current.id and ($3::integer is null or version < $3)
              order by version desc
              limit $4)) as each
           order by version desc
           limit $4) as found on true`,
    [accountId, uuid, before ?? null, limit],
  );
  if (rows.length === 0) return null;
  return rows.filter(({ version }) => version !== null);
}

/** What these versions said, as JSON text by number; those that are not kept are missing. */
export async function findVersions(
  db: Sql,
  { key, current }: Versioned,
  [accountId, uuid]: readonly [number, string],
  wanted: readonly number[],
): Promise<Map<number, string>> {
  const { rows } = await db.query<{ version: number; body: string }>(
    `
      with current as materialized (${current})
      select version, body::text as body from current where version = any($3::integer[])
      union all
      select f.version, f.body::text
        from former_version f
        join current on f.${key} = current.id
       where f.version = any($3::integer[])`,
    [accountId, uuid, wanted],
  );
  return new Map(rows.map(({ version, body }) => [version, body]));
}

/** Throws `not-found`. */
export function noSuchVersion(version: number): DomainError {
  return new DomainError('not-found', `Version ${version} does not exist or is no longer kept.`);
}

/** Deletes versions that were replaced before `beforeTs` (ms), some thousand rows per transaction. */
export function forgetVersions(
  db: Database,
  beforeTs: number,
  signal?: AbortSignal,
): Promise<number> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from former_version
        where ctid = any(array(
          select ctid from former_version where ended_at < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [beforeTs, limit],
    );
  return deleteInBatches(deleteSome, { signal });
}

/** The number of a version in a path or a query. */
export const versionNumber = z.coerce
  .number()
  .int()
  .min(1)
  .max(2_147_483_647)
  .meta({ description: 'The number of a version, from 1.', example: 1 });

/** Who wrote something, and why. */
export const MadeBy = z.object({
  by: z.enum(['session', 'key', 'device', 'operator', 'service', 'nobody', 'unknown']).meta({
    description: 'Who did it. unknown: it is from before this was kept.',
  }),
  sessionId: z.guid().optional(),
  keyId: z.guid().optional(),
  reason: z.string().optional(),
});

const Version = z
  .object({
    version: z.int().meta({ description: 'From 1.' }),
    timestamp: timestamp.meta({ description: 'When it was written.' }),
    ...MadeBy.shape,
    name: z.string(),
    bytes: z.int(),
  })
  .meta({ id: 'Version' });
export type VersionEntry = z.infer<typeof Version>;

const VersionList = z.object({ versions: z.array(Version), timestamp }).meta({ id: 'VersionList' });

function toVersion({
  made_at,
  made_by,
  session_id,
  reason,
  ...rest
}: Row): z.input<typeof Version> {
  const { version, name, bytes } = rest;
  return {
    version,
    timestamp: made_at,
    ...sayMaker({ made_by, session_id, reason }),
    name,
    bytes,
  };
}

/** Who wrote a row, as an answer says it. */
export function sayMaker({
  made_by: by,
  session_id: session,
  reason,
}: Pick<Row, 'made_by' | 'session_id' | 'reason'>): z.input<typeof MadeBy> {
  return {
    by: by ?? 'unknown',
    ...(session === null ? {} : { [by === 'key' ? 'keyId' : 'sessionId']: session }),
    ...(reason === null ? {} : { reason }),
  };
}

const Operation = z
  .object({
    op: z.enum(['add', 'remove', 'replace']),
    path: z.string().meta({ description: 'A JSON Pointer.' }),
    value: z.unknown().optional(),
  })
  .meta({ id: 'PatchOperation', description: 'An operation of JSON Patch (RFC 6902).' });

const Difference = z
  .object({ from: z.int(), to: z.int(), patch: z.array(Operation), timestamp })
  .meta({ id: 'VersionDifference' });

type VersionRoutes<P extends z.ZodObject> = {
  db: Sql;
  versioned: Versioned;
  /** The path of the thing, and its parameters: one, its uuid. */
  path: string;
  params: P;
  /** The end of the routes' names: `PurposeVersion`. */
  name: string;
  tag: string;
  scope: Scope;
  /** What the thing is called in a sentence: `a purpose`. */
  called: string;
  /** The schema of the thing. */
  body: z.ZodType;
  noSuchThing: () => DomainError;
};

/** List the versions of a thing, read one, and compare two. */
export function versionRoutes<P extends z.ZodObject>(routes: VersionRoutes<P>): Route[] {
  const { db, versioned, path, params, name, tag, scope, called, body, noSuchThing } = routes;
  const [uuidName = ''] = Object.keys(params.shape);
  const placeOf = (accountId: number, sent: unknown) =>
    [accountId, (sent as Record<string, string>)[uuidName] ?? ''] as const;
  const common = { method: 'get', tag, scope, auth: 'account', errors: [404] } as const;
  const read = async (place: readonly [number, string], wanted: readonly number[]) => {
    const found = await findVersions(db, versioned, place, wanted);
    return wanted.map((version) => {
      const text = found.get(version);
      if (text === undefined) throw noSuchVersion(version);
      return text;
    });
  };
  return [
    defineRoute({
      ...common,
      name: `list${name}s`,
      path: `${path}/versions`,
      summary: `List the versions of ${called}`,
      description:
        'Newest first; the first one is in force. The newest 1,000 are kept, at most 256 KiB, for as long as events. ' +
        'A Link header names the next page.',
      params,
      query: z.object({ limit: limitQuery(100), cursor: cursorQuery(versionNumber) }),
      response: VersionList,
      responseHeaders: { Link: 'The next page: `<…>; rel="next"`. Absent on the last page.' },
      handler: async ({ account, params: sent, query, request }) => {
        const { limit, cursor: before } = query;
        const place = placeOf(account.accountId, sent);
        const rows = await listVersions(db, versioned, place, { before, limit: limit + 1 });
        if (rows === null) throw noSuchThing();
        const page = rows.slice(0, limit);
        if (rows.length > limit) linkNext(request, page.at(-1)?.version);
        return { versions: page.map(toVersion), timestamp: request.now() };
      },
    }),
    defineRoute({
      ...common,
      name: `get${name}`,
      path: `${path}/versions/{version}`,
      summary: `Read a version of ${called}`,
      params: params.extend({ version: versionNumber }),
      response: body,
      answerBytes: 4_194_304,
      handler: async ({ account, params: sent }) => {
        const { version } = sent as { version: number };
        const [text = ''] = await read(placeOf(account.accountId, sent), [version]);
        return jsonText(text);
      },
    }),
    defineRoute({
      ...common,
      name: `compare${name}s`,
      path: `${path}/diff`,
      summary: `Compare two versions of ${called}`,
      description: 'The JSON Patch (RFC 6902) that makes version `to` of version `from`.',
      params,
      query: z.object({ from: versionNumber, to: versionNumber }),
      response: Difference,
      answerBytes: 4_194_304,
      handler: async ({ account, params: sent, query, request }) => {
        const { from, to } = query;
        const [before = '', after = ''] = await read(placeOf(account.accountId, sent), [from, to]);
        return { from, to, patch: compare(before, after), timestamp: request.now() };
      },
    }),
  ];
}

/** The patch that makes `after` of `before`, both JSON objects as text. Takes time in proportion to their length. */
function compare(before: string, after: string): z.input<typeof Operation>[] {
  const [from, to] = [before, after].map((text) => JSON.parse(text) as object);
  return fastJsonPatch.compare(from ?? {}, to ?? {}) as z.input<typeof Operation>[];
}
