import type { Bus } from '../bus/bus.ts';
import { doneBy } from '../audit/audit.ts';
import { warnOfUnknown } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import { refuseLabelList } from '../devices/select.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { DeviceParams, linkNext } from '../http/schema.ts';
import type { RequestInfo } from '../http/request.ts';
import { createFairRunner, type LimitsOf } from '../quotas/quotas.ts';
import {
  AllCommandsQuery,
  CancelledCommand,
  CommandList,
  CommandParams,
  CommandResponse,
  CommandsQuery,
  NewCommand,
  toCommand,
  WaitQuery,
} from './schema.ts';
import {
  addCommand,
  cancelCommand,
  findCommand,
  listCommands,
  noSuchCommand,
  refuseUnknownDevice,
} from './store.ts';
import type { CommandWaits } from './wait.ts';

type CommandRoutesDeps = {
  db: Database;
  bus: Pick<Bus, 'publish'>;
  limitsOf: LimitsOf;
  waits: Pick<CommandWaits, 'untilEnded'>;
  newUuid: () => string;
};

const tag = 'Commands';
const nextPage = { Link: 'The next page: `<…>; rel="next"`. Absent on the last page.' };
/** A page of commands with results of 16 KiB. */
const pageBytes = 8_388_608;

/** What people and programs tell devices to do, and what became of it; an addition to the specification. */
export function commandRoutes(deps: CommandRoutesDeps): Route[] {
  return [give(deps), listOfDevice(deps), read(deps), cancel(deps), listAll(deps)];
}

type Waited = {
  accountId: number;
  params: { deviceAuthUuid: string; commandId: string };
  waitMs: number | undefined;
  request: RequestInfo;
};

/** The command as it is, or as it ends within the time that the caller waits. Throws `not-found`. */
async function answerWith(
  { db, waits }: CommandRoutesDeps,
  { accountId, params, waitMs = 0, request }: Waited,
) {
  const { commandId } = params;
  const waiting = { accountId, commandId, waitMs, signal: request.signal };
  const command = await waits.untilEnded(waiting, async () => {
    const found = await findCommand(db, accountId, params);
    if (!found) throw noSuchCommand();
    return found;
  });
  return { ...toCommand(command), timestamp: request.now() };
}

function give(deps: CommandRoutesDeps): Route {
  const { db, bus, limitsOf, newUuid } = deps;
  const runFairly = createFairRunner(2);
  return defineRoute({
    name: 'giveCommand',
    scope: 'commands:write',
    method: 'post',
    path: '/v2/devices/{deviceAuthUuid}/commands',
    summary: 'Give a device a command',
    description:
      'The device receives it when it is connected, at once or later, until it expires. With `wait`, the answer ' +
      'is the command when it has ended.',
    tag,
    auth: 'account',
    params: DeviceParams,
    query: WaitQuery,
    body: NewCommand,
    example: { name: 'restart', params: { delaySeconds: 5 } },
    response: CommandResponse,
    errors: [403, 404, 409],
    takesKey: true,
    warnOf: warnOfUnknown,
    handler: async ({ account, params, query, body, request, once }) => {
      const { accountId } = account;
      const { deviceAuthUuid } = params;
      const { commandId } = await once<{ commandId: string }>(async (keep) => {
        const made = { commandId: newUuid() };
        const adding = {
          ...made,
          accountId,
          deviceUuid: deviceAuthUuid,
          command: body,
          limits: limitsOf(accountId),
          by: doneBy(account, request),
        };
        const add = () =>
          db.transaction(async (tx) => {
            await addCommand(tx, adding);
            await keep?.(tx, made);
          });
        await runFairly(accountId, add);
        bus.publish('due', { uuid: deviceAuthUuid, topic: 'command' });
        bus.publish('command', { accountId, commandId: made.commandId });
        return made;
      });
      const waited = { accountId, params: { deviceAuthUuid, commandId }, request };
      return answerWith(deps, { ...waited, waitMs: query.wait });
    },
  });
}

function read(deps: CommandRoutesDeps): Route {
  return defineRoute({
    name: 'getCommand',
    scope: 'commands:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/commands/{commandId}',
    summary: 'Show a command',
    tag,
    auth: 'account',
    params: CommandParams,
    query: WaitQuery,
    response: CommandResponse,
    errors: [404],
    handler: ({ account: { accountId }, params, query, request }) =>
      answerWith(deps, { accountId, params, waitMs: query.wait, request }),
  });
}

function cancel({ db, bus }: CommandRoutesDeps): Route {
  return defineRoute({
    name: 'cancelCommand',
    scope: 'commands:write',
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}/commands/{commandId}',
    summary: 'Cancel a command',
    description:
      'What is on its way to the device cannot be called back: then `sent` is true. A command that has ended ' +
      'does not change.',
    tag,
    auth: 'account',
    params: CommandParams,
    response: CancelledCommand,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      const by = doneBy(account, request);
      const { command, sent } = await db.transaction((tx) =>
        cancelCommand(tx, accountId, params, by),
      );
      bus.publish('command', { accountId, commandId: command.commandId });
      bus.publish('due', { uuid: command.deviceAuthUuid, topic: 'command' });
      return { ...toCommand(command), sent, timestamp: request.now() };
    },
  });
}

type Page = { limit: number; cursor?: { id: number } | undefined };

async function listPage(
  { db }: CommandRoutesDeps,
  request: RequestInfo,
  { limit, cursor }: Page,
  of: Omit<Parameters<typeof listCommands>[1], 'limit' | 'before'>,
) {
  const found = await listCommands(db, { ...of, before: cursor?.id ?? null, limit: limit + 1 });
  const commands = found.slice(0, limit);
  const last = commands.at(-1);
  if (last && found.length > limit) linkNext(request, { id: last.id });
  return { commands: commands.map(toCommand), timestamp: request.now() };
}

function listOfDevice(deps: CommandRoutesDeps): Route {
  return defineRoute({
    name: 'listDeviceCommands',
    scope: 'commands:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/commands',
    summary: 'List the commands of a device',
    description: 'Newest first.',
    tag,
    auth: 'account',
    params: DeviceParams,
    query: CommandsQuery,
    response: CommandList,
    errors: [404],
    responseHeaders: nextPage,
    answerBytes: pageBytes,
    handler: async ({ account: { accountId }, params, query, request }) => {
      const { deviceAuthUuid } = params;
      await refuseUnknownDevice(deps.db, accountId, deviceAuthUuid);
      const { state, name } = query;
      const of = { accountId, labels: null, devices: [deviceAuthUuid], state, name };
      return listPage(deps, request, query, of);
    },
  });
}

function listAll(deps: CommandRoutesDeps): Route {
  return defineRoute({
    name: 'listCommands',
    scope: 'commands:read',
    method: 'get',
    path: '/v2/commands',
    summary: 'List commands',
    description: 'Of all devices, newest first.',
    tag,
    auth: 'account',
    query: AllCommandsQuery,
    response: CommandList,
    errors: [],
    responseHeaders: nextPage,
    answerBytes: pageBytes,
    handler: async ({ account, query, request }) => {
      const { accountId } = account;
      const labels = labelsOf(account);
      const { limit, cursor, ...filter } = query;
      await refuseLabelList(deps.db, accountId, { label: filter.label, labels });
      return listPage(deps, request, { limit, cursor }, { accountId, labels, ...filter });
    },
  });
}
