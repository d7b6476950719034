import { insertEntry, type DoneBy } from '../audit/audit.ts';
import { commandJson, commandTransitions, openStates } from '../contract/command.ts';
import type { Database } from '../db/database.ts';
import { hasEarlierProcess } from '../db/lease.ts';
import { deleteInBatches, type Sql, textList } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { invalid } from '../http/route.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import { findUsage, lockUsage, quotaExceeded, today } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { AllCommandsQuery, CommandRow, NewCommand } from './schema.ts';

const dayMs = 86_400_000;
const longestMs = 31 * dayMs;

const open = textList(openStates);

const columns = `
  c.id, c.uuid as "commandId", d.uuid as "deviceAuthUuid", c.name, c.params, c.reason, c.state,
  c.created_at as "createdTs", c.expires_at as "expiresTs", c.sent_at as "sentTs",
  c.accepted_at as "acceptedTs", c.running_at as "runningTs", c.ended_at as "endedTs",
  c.progress, c.result, c.answer_text as text, c.late, c.handed`;

type Adding = {
  accountId: number;
  deviceUuid: string;
  commandId: string;
  command: NewCommand;
  limits: QuotaSettings;
  by: DoneBy;
};

/**
 * Stores a command for a device within the caller's transaction, and the entry of the audit trail. Throws `not-found`,
 * `quota-exceeded`, `invalid-input` for a time that is over or too far away, and `conflict` while a process of an
 * earlier version runs: that would acknowledge the device's answer and keep it only as a rejection.
 */
export async function addCommand(
  tx: Sql,
  { accountId, deviceUuid, commandId, command, limits, by }: Adding,
): Promise<void> {
  const { name, params, reason, expiresTs = by.ts + dayMs } = command;
  refuseExpiry(expiresTs, by.ts);
  if (await hasEarlierProcess(tx)) throw earlierProcess();
  // The row of the account is locked: so the numbers of its commands are in the order of their times.
  await lockUsage(tx, accountId);
  const { deviceId, waiting } = await findTarget(tx, accountId, deviceUuid);
  const { commandsPerDevice: limit } = limits;
  if (waiting >= limit) throw quotaExceeded({ quota: 'commandsPerDevice', limit, used: waiting });
  const json = params === undefined ? null : commandJson(params);
  await countCommand(tx, accountId, limits, json ?? '');
  await tx.query(
    `
      insert into command (uuid, account_id, device_id, name, params, reason, created_at, expires_at, bytes)
      values ($1, $2, $3, $4, $5, $6, service_now(), ms_to_timestamp($7),
              octet_length(concat($5::text, $6::text)))`,
    [commandId, accountId, deviceId, name, json, reason ?? null, expiresTs],
  );
  const details = { commandId, name, deviceAuthUuid: deviceUuid, ...(reason && { reason }) };
  await insertEntry(tx, accountId, { kind: 'command-given', ...by, details });
}

function refuseExpiry(expiresTs: number, nowTs: number): void {
  const isWrong = expiresTs <= nowTs || expiresTs > nowTs + longestMs;
  if (isWrong)
    throw invalid([{ path: '/expiresTs', message: 'expected a time of the next 31 days' }]);
}

async function findTarget(
  tx: Sql,
  accountId: number,
  uuid: string,
): Promise<{ deviceId: number; waiting: number }> {
  const { rows } = await tx.query<{ deviceId: number; waiting: number }>(
    `
      select d.id as "deviceId",
             (select count(*) from command c
               where c.device_id = d.id and c.state in ${open})::integer as waiting
        from device d
       where d.account_id = $1 and d.uuid = $2`,
    [accountId, uuid],
  );
  const [target] = rows;
  if (!target) throw noSuchDevice();
  return target;
}

/**
 * A command counts once, and once again for each KiB of its params, as what a day's commands take has no other bound.
 * The caller has locked the account's usage. Throws `quota-exceeded`.
 */
async function countCommand(
  tx: Sql,
  accountId: number,
  limits: QuotaSettings,
  params: string,
): Promise<void> {
  const usage = await findUsage(tx, accountId);
  const used = usage?.used.commandsPerDay ?? 0;
  const limit = usage?.overrides.commandsPerDay ?? limits.commandsPerDay;
  if (used >= limit) throw quotaExceeded({ quota: 'commandsPerDay', limit, used });
  await tx.query(
    `
      update account_usage
         set commands = $2 + case when commands_day = ${today} then commands else 0 end,
             commands_day = ${today}
       where account_id = $1`,
    [accountId, 1 + Math.floor(Buffer.byteLength(params) / 1_024)],
  );
}

/** Null if the account's device has no such command. */
export async function findCommand(
  sql: Sql,
  accountId: number,
  { deviceAuthUuid, commandId }: { deviceAuthUuid: string; commandId: string },
): Promise<CommandRow | null> {
  const { rows } = await sql.query<CommandRow>({
    name: 'commands-find',
    text: `
      select ${columns}
        from command c
        join device d on d.id = c.device_id and d.account_id = $1
       where c.uuid = $3 and d.uuid = $2`,
    values: [accountId, deviceAuthUuid, commandId],
  });
  return rows[0] ?? null;
}

/**
 * Ends a command before its device does, within the caller's transaction. `sent`: the device may have it. A command
 * that has ended stays as it is. Throws `not-found`.
 */
export async function cancelCommand(
  tx: Sql,
  accountId: number,
  of: { deviceAuthUuid: string; commandId: string },
  by: DoneBy,
): Promise<{ command: CommandRow; sent: boolean }> {
  const { rowCount } = await tx.query(
    `
      update command c
         set state = 'cancelled', version = version + 1,
             ended_at = greatest(c.created_at, c.sent_at, c.accepted_at, c.running_at, service_now())
        from device d
       where d.id = c.device_id and d.account_id = $1 and d.uuid = $2 and c.uuid = $3
         and c.state in ${textList(commandTransitions.cancelled)}`,
    [accountId, of.deviceAuthUuid, of.commandId],
  );
  const command = await findCommand(tx, accountId, of);
  if (!command) throw noSuchCommand();
  const sent = command.handed > 0;
  if (rowCount === 0) return { command, sent };
  const { commandId, name, deviceAuthUuid } = command;
  const details = { commandId, name, deviceAuthUuid };
  await insertEntry(tx, accountId, { kind: 'command-cancelled', ...by, details });
  return { command, sent };
}

/** Which commands of an account. `labels`: only of devices with one of these; null: of all. */
type CommandsOf = Pick<AllCommandsQuery, 'state' | 'name' | 'devices' | 'label'> & {
  accountId: number;
  labels: readonly string[] | null;
  /** Only older ones than the one with this number. */
  before: number | null;
  limit: number;
};

/** The newest first. */
export async function listCommands(sql: Sql, of: CommandsOf): Promise<CommandRow[]> {
  const { rows } = await sql.query<CommandRow>({
    name: 'commands-list',
    text: `
      select ${columns}
        from command c
        join device d on d.id = c.device_id and d.account_id = $1
       where c.account_id = $1
         and ($2::uuid[] is null
              or c.device_id = any(array(select id from device where account_id = $1 and uuid = any($2))))
         and ($3::text is null or d.labels @> array[$3])
         and ($4::text[] is null or d.labels && $4)
         and ($5::text[] is null or c.state = any($5))
         and ($6::text is null or c.name = $6)
         and ($7::bigint is null or c.id < $7)
       order by c.id desc
       limit $8`,
    values: [
      of.accountId,
      of.devices ?? null,
      of.label ?? null,
      of.labels,
      of.state ?? null,
      of.name ?? null,
      of.before,
      of.limit,
    ],
  });
  return rows;
}

/** A command that ended because its time is over. */
type ExpiredCommand = { accountId: number; commandId: string; deviceAuthUuid: string | null };

/** Ends some thousand commands whose time is over at `nowTs`; others that end in this moment are skipped. */
export async function expireCommands(sql: Sql, nowTs: WallMs): Promise<ExpiredCommand[]> {
  const { rows } = await sql.query<ExpiredCommand>({
    name: 'commands-expire',
    text: `
      update command c
         set state = 'expired', version = version + 1,
             ended_at = greatest(c.expires_at, c.sent_at, c.accepted_at, c.running_at)
        from (select id from command
               where state in ${open} and expires_at <= ms_to_timestamp($1)
               order by expires_at
               limit 1000
                 for no key update skip locked) as n
        left join lateral (select d.uuid from device d, command k
                            where k.id = n.id and d.id = k.device_id) as d on true
       where c.id = n.id
      returning c.account_id as "accountId", c.uuid as "commandId", d.uuid as "deviceAuthUuid"`,
    values: [nowTs],
  });
  return rows;
}

/** How long a command is kept after its end. */
const keptDays = 30;

/** Deletes commands that ended more than 30 days ago. */
export async function forgetCommands(
  db: Database,
  nowTs: WallMs,
  signal?: AbortSignal,
): Promise<void> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from command
        where ctid = any(array(
          select ctid from command where ended_at < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [Math.floor(nowTs - keptDays * dayMs), limit],
    );
  await deleteInBatches(deleteSome, { signal });
}

/** Throws `not-found` unless the account has the device. */
export async function refuseUnknownDevice(
  sql: Sql,
  accountId: number,
  uuid: string,
): Promise<void> {
  const { rows } = await sql.query('select from device where account_id = $1 and uuid = $2', [
    accountId,
    uuid,
  ]);
  if (rows.length === 0) throw noSuchDevice();
}

const earlierProcess = () =>
  new DomainError(
    'conflict',
    'A process of an earlier version of the service is running, which does not know commands: try again when it has ended.',
  );

export const noSuchCommand = () => new DomainError('not-found', 'There is no such command.');
const noSuchDevice = () => new DomainError('not-found', 'There is no such device.');
