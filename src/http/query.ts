import { unescape } from 'node:querystring';
import type { Context } from 'koa';
import { z } from 'zod';
import type { Problem } from '../errors.ts';
import { nearestName } from '../lib/schema.ts';
import { readTime } from '../lib/time.ts';
import { isPercentEncodedUtf8, isStorable } from './body.ts';
import { invalid, maxProblems, type Route } from './route.ts';

/**
 * Routes of the interface specification. It lets a query contain unknown parameters, which have no effect, and filters
 * that exclude each other, which match nothing. The answers stay as specified; the header `X-Warnings` reports the
 * mistake.
 */
const specified: ReadonlySet<string> = new Set([
  '/v1/auth/login',
  '/v1/auth/refresh',
  '/v2/accounts',
  '/v2/accounts/events',
  '/v2/accounts/login',
  '/v2/devices',
  '/v2/devices/profile',
  '/v2/devices/{deviceAuthUuid}',
  '/v2/devices/{deviceAuthUuid}/configuration',
  '/v2/events/{deviceAuthUuid}',
  '/v2/purposes',
  '/v2/purposes/{purposeUuid}',
  '/v2/status',
]);

/** Characters that any proxy in front is sure to let through. */
const longestHeader = 2_000;

/**
 * Returns the query as an object, for the route's schema. Throws `invalid-input` for a parameter that is repeated or
 * unreadable, and for one that the route does not know or filters that exclude each other. On a route of the
 * specification the latter two are listed in the header `X-Warnings` instead, as JSON `[{ path, message }]`. Every
 * route lists times that look like seconds there.
 */
export function readQuery(ctx: Context, route: Route): unknown {
  const problems = findUnreadable(ctx, route);
  if (problems.length > 0) throw invalid(problems);
  if (ctx.querystring === '') return route.query ? {} : undefined;
  const doubtful = isInterface(route)
    ? [...findUnknown(ctx, route), ...findContradictions(ctx, route)]
    : [];
  if (doubtful.length > 0 && !specified.has(route.path)) throw invalid(doubtful);
  const warnings = [...doubtful, ...findSeconds(ctx)];
  if (warnings.length > 0) ctx.set('X-Warnings', headerOf(warnings));
  return route.query ? { ...ctx.query } : undefined;
}

/** Pages for people ignore unknown parameters: mail programs and search engines append some. */
const isInterface = ({ path }: Route) => /^\/v\d\//.test(path);

/** Problems of reading the query. Unknown parameters are not decoded, so they need not be percent-encoded UTF-8. */
function findUnreadable(ctx: Context, route: Route): Problem[] {
  const known = knownOf(route);
  const problems = Object.entries(ctx.query)
    .filter(([, value]) => !isStorable(String(value)))
    .map(([path]) => ({ path, message: 'is not valid text' }));
  for (const part of ctx.querystring.split('&').filter((one) => !isPercentEncodedUtf8(one))) {
    const path = unescape(part.split('=', 1)[0] ?? '');
    if (known === null || known.includes(path))
      problems.push({ path, message: 'is not percent-encoded UTF-8' });
  }
  for (const [path, value] of Object.entries(ctx.query)) {
    if (!known?.includes(path)) continue;
    if (Array.isArray(value)) {
      if (!takesSeveral(route, path, value))
        problems.push({ path, message: 'is given more than once' });
    } else if (lostPlus.test(value ?? ''))
      problems.push({ path, message: 'contains a space instead of +: write + as %2B in a query' });
  }
  return problems;
}

/** Whether the route lets the parameter be repeated. */
function takesSeveral({ query }: Route, name: string, values: string[]): boolean {
  const schema: unknown = query instanceof z.ZodObject ? query.shape[name] : undefined;
  return schema instanceof z.ZodType && schema.safeParse(values).success;
}

/** A time with an offset whose `+` was not encoded: in a query, `+` means a space (URL Standard, section 5.1). */
const lostPlus = /T\d\d:\d\d\S* \d\d:?\d\d$/;

function findUnknown({ query }: Context, route: Route): Problem[] {
  const known = knownOf(route);
  if (known === null) return [];
  const unknown = Object.keys(query).filter((name) => !known.includes(name));
  return unknown.slice(0, maxProblems).map((path) => {
    const meant = nearestName(path, known);
    const hint =
      meant === null ? `known are ${known.join(', ') || 'none'}` : `did you mean ${meant}?`;
    return { path, message: `is not a parameter of this route: ${hint}` };
  });
}

/** The names that the route's schema takes; null if the schema cannot list them. */
function knownOf({ query, auth }: Route): string[] | null {
  const own = query instanceof z.ZodObject ? Object.keys(query.shape) : query ? null : [];
  return auth === 'ticket' ? [...(own ?? []), 'ticket'] : own;
}

/**
 * Filters that exclude each other: an empty answer would look as if nothing had happened. `start` and `end` mean the
 * same on every route; the route itself knows about its other filters.
 */
function findContradictions({ query }: Context, route: Route): Problem[] {
  const known = knownOf(route) ?? [];
  const timeOf = (name: string) => (known.includes(name) ? readTime(String(query[name])) : null);
  const problems: Problem[] = [];
  const [startTs, endTs] = [timeOf('start'), timeOf('end')];
  if (startTs !== null && endTs !== null && startTs > endTs)
    problems.push({ path: 'start', message: 'is later than end: nothing lies between them' });
  if (!route.query || !route.findContradictions) return problems;
  const read = route.query.safeParse({ ...query });
  return read.success ? [...problems, ...route.findContradictions(read.data)] : problems;
}

/** A time of this century in seconds means January 1970 if it is read as milliseconds. */
function findSeconds({ query }: Context): Problem[] {
  return ['start', 'end']
    .filter((name) => /^\d{9,10}$/.test(String(query[name] ?? '')))
    .map((path) => ({ path, message: 'looks like seconds: expected milliseconds since 1970' }));
}

/** Header values are ASCII (RFC 9110 section 5.5), but the names come from the client. */
function headerOf(warnings: Problem[]): string {
  const told: Problem[] = [];
  for (const warning of warnings) {
    if (asciiJson([...told, warning]).length > longestHeader) break;
    told.push(warning);
  }
  return asciiJson(told);
}

const asciiJson = (value: unknown) =>
  JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
