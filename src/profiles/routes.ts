import type { z } from 'zod';
import {
  joinWarnings,
  type Warned,
  type Warning,
  warnOfNumberForms,
  warnOfUnknown,
} from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { detailsOfDevices, doneBy, insertEntry } from '../audit/audit.ts';
import { DomainError } from '../errors.ts';
import { labelsOf } from '../http/router.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { createFairRunner } from '../quotas/quotas.ts';
import { historyRoute, noteInstaller } from './history.ts';
import { type InstallDeps, installProfile, namesOf } from './install.ts';
import {
  findPurposesOf,
  findRollOut,
  InstalledProfile,
  listProfiles,
  ProfileInstall,
  ProfileList,
  ProfileParams,
  ProfilesQuery,
  PurposesOfProfile,
  RollOut,
} from './queries.ts';
import { jsonText } from '../http/answer.ts';
import { exampleIds, linkNext } from '../http/schema.ts';
import { ReasonQuery, reasonOf, type WrittenBy } from '../versions/versions.ts';

type ProfileDeps = { db: Database; install: InstallNoted };

/** Specification section 4.3, Install device profile; the progress of its roll-out; and which profile is where. */
export function profileRoutes(deps: ProfileDeps): Route[] {
  return [install(deps), rollOut(deps), list(deps), read(deps), historyRoute(deps)];
}

/** Warnings that become errors in strict mode. */
function warnOf(schema: z.ZodType, sent: unknown, body?: ProfileInstall): Warning[] {
  const ofNumbers = body ? warnOfNumberForms(body.purposes, (i) => `/purposes/${i}`) : [];
  return joinWarnings(warnOfUnknown(schema, sent), ofNumbers);
}

/** Who installs a profile, and why. `labels`: only devices with one of these; null: any. */
type Installer = { accountId: number; labels: readonly string[] | null; by: WrittenBy };

/** Runs in the transaction that installs a profile. */
type AlsoInstall = (tx: Sql, pId: string) => Promise<void>;

type InstallNoted = (
  installer: Installer,
  asked: ProfileInstall,
  also: AlsoInstall,
) => Promise<{ pId: string } & Warned>;

/** Installs profiles (`installProfile`) of at most two requests of an account at a time, and notes who did. */
export function createInstall(deps: InstallDeps): InstallNoted {
  const runFairly = createFairRunner(2);
  return ({ accountId, labels, by }, asked, also) =>
    runFairly(accountId, () =>
      installProfile(deps, accountId, asked, labels, async (tx, { pId, uuids, purposes }) => {
        await also(tx, pId);
        await noteInstaller(tx, pId, by);
        const told = { pId, purposes: namesOf(purposes), ...detailsOfDevices(uuids) };
        const details = { ...told, ...(by.reason && { reason: by.reason }) };
        await insertEntry(tx, accountId, { kind: 'profile-installed', ...by, details });
      }),
    );
}

function install({ install }: ProfileDeps): Route {
  return defineRoute({
    name: 'installProfile',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/profile',
    summary: 'Install device profile',
    description: 'Stored purposes come first, in the given order, then those given in full.',
    tag: 'Profiles',
    auth: 'account',
    body: ProfileInstall,
    example: { deviceAuthUuids: [exampleIds.device], purposeUuids: [exampleIds.purpose] },
    response: InstalledProfile,
    errors: [403, 404],
    answerBytes: 4_194_304,
    takesKey: true,
    query: ReasonQuery,
    warnOf,
    handler: async ({ account, query, body, request, warnings: before, once }) => {
      const { accountId } = account;
      // A repeated request gets only these: the devices may have changed since the installation.
      let told: Warned = { warnings: before };
      const { pId, timestamp } = await once<{ pId: string; timestamp: number }>(async (keep) => {
        const timestamp = request.now();
        const by = { ...doneBy(account, request), reason: reasonOf(request, query) };
        const installer = { accountId, labels: labelsOf(account), by };
        const installed = await install(installer, body, async (tx, pId) =>
          keep?.(tx, { pId, timestamp }),
        );
        const { pId, ...warned } = installed;
        told = { ...warned, warnings: joinWarnings(before, warned.warnings) };
        return { pId, timestamp };
      });
      return { timestamp, state: 'pending' as const, pId, ...told };
    },
  });
}

function rollOut({ db }: ProfileDeps): Route {
  return defineRoute({
    name: 'getRollOut',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/profile/{pId}',
    summary: "Show the progress of a profile's roll-out",
    tag: 'Profiles',
    auth: 'account',
    params: ProfileParams,
    response: RollOut,
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account, params, request }) => {
      const rows = await findRollOut(db, account.accountId, params.pId, labelsOf(account));
      if (!rows) throw new DomainError('not-found', 'There is no such profile.');
      const devices = rows.map(({ uuid, state, answer_text, changed_at }) => ({
        deviceAuthUuid: uuid,
        state,
        text: answer_text ?? undefined,
        ts: changed_at,
      }));
      return { pId: params.pId, devices, timestamp: request.now() };
    },
  });
}

function list({ db }: ProfileDeps): Route {
  const runFairly = createFairRunner(1);
  return defineRoute({
    name: 'listProfiles',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/profiles',
    summary: 'List the profiles of devices',
    description:
      'What devices run, wait for or have refused, newest first: profiles with the same purposes once.',
    tag: 'Profiles',
    auth: 'account',
    query: ProfilesQuery,
    response: ProfileList,
    errors: [],
    responseHeaders: { Link: 'The next page, if there is one.' },
    answerBytes: 4_194_304,
    handler: async ({ account, query, request }) => {
      const { limit, cursor = null } = query;
      const of = { labels: labelsOf(account), after: cursor, limit };
      const { profiles, next } = await runFairly(account.accountId, () =>
        listProfiles(db, account.accountId, of),
      );
      if (next !== null) linkNext(request, next);
      return { profiles, timestamp: request.now() };
    },
  });
}

function read({ db }: ProfileDeps): Route {
  return defineRoute({
    name: 'getProfile',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/profiles/{pId}',
    summary: 'Show the purposes of a profile',
    tag: 'Profiles',
    auth: 'account',
    params: ProfileParams,
    response: PurposesOfProfile,
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account, params: { pId }, request }) => {
      const purposes = await findPurposesOf(db, account.accountId, pId, labelsOf(account));
      if (purposes === null) throw new DomainError('not-found', 'There is no such profile.');
      return jsonText(`{"pId":"${pId}","purposes":${purposes},"timestamp":${request.now()}}`);
    },
  });
}
