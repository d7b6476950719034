/** What ingest's transaction reads and writes of the commands that its messages answer. */

import type { CommandProgress, LateAnswer } from '../contract/command.ts';
import type { Sql } from '../db/sql.ts';

/** A command as its device names it. */
export type CommandName = { deviceId: number; commandId: string };

type AnsweredRow = Omit<CommandProgress, 'told' | 'late'> & {
  deviceId: number;
  commandId: string;
  id: number;
  version: number;
  progress: number | null;
  late: string | null;
};

/** Commands that devices answer, as they are now; those that a device does not have are missing. */
export async function findAnsweredCommands(
  tx: Sql,
  answered: readonly CommandName[],
): Promise<(CommandName & { id: number; version: number; progress: CommandProgress })[]> {
  const { rows } = await tx.query<AnsweredRow>({
    name: 'commands-answered',
    text: `
      select distinct c.device_id as "deviceId", c.uuid as "commandId", c.id, c.version, c.state,
             c.created_at as "createdTs", c.expires_at as "expiresTs", c.sent_at as "sentTs",
             c.accepted_at as "acceptedTs", c.running_at as "runningTs", c.ended_at as "endedTs",
             c.progress, c.late
        from unnest($1::bigint[], $2::uuid[]) as n (device_id, uuid)
        join command c on c.uuid = n.uuid and c.device_id = n.device_id`,
    values: [answered.map((one) => one.deviceId), answered.map((one) => one.commandId)],
  });
  return rows.map(({ deviceId, commandId, id, version, progress, late, ...row }) => ({
    deviceId,
    commandId,
    id,
    version,
    progress: {
      ...row,
      // What earlier answers told stays in the row unless a later one tells something else.
      told: progress === null ? {} : { progress },
      late: late === null ? null : (JSON.parse(late) as LateAnswer),
    },
  }));
}

/**
 * Stores what answers made of commands. Returns false if one of them changed since it was read: then the transaction
 * must be rolled back.
 */
export async function saveCommandAnswers(
  tx: Sql,
  changed: readonly { id: number; version: number; after: CommandProgress }[],
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'commands-save-answers',
    // In the order of their numbers, as all do that change several: so they cannot deadlock.
    text: `
      update command c
         set state = n.state, version = c.version + 1,
             sent_at = ms_to_timestamp(n.sent_at), accepted_at = ms_to_timestamp(n.accepted_at),
             running_at = ms_to_timestamp(n.running_at), ended_at = ms_to_timestamp(n.ended_at),
             progress = coalesce(n.progress, c.progress), result = coalesce(n.result, c.result),
             answer_text = coalesce(n.answer_text, c.answer_text), late = n.late,
             bytes = octet_length(concat(c.params, c.reason, coalesce(n.result, c.result),
                                         coalesce(n.answer_text, c.answer_text), n.late))
        from (select n.*
                from unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[],
                            $6::bigint[], $7::bigint[], $8::real[], $9::text[], $10::text[], $11::text[])
                  as n (id, version, state, sent_at, accepted_at, running_at, ended_at, progress,
                        result, answer_text, late)
                join command k on k.id = n.id
               order by n.id
                 for no key update of k) as n
       where c.id = n.id and c.version = n.version`,
    values: [
      changed.map(({ id }) => id),
      changed.map(({ version }) => version),
      changed.map(({ after }) => after.state),
      changed.map(({ after }) => after.sentTs),
      changed.map(({ after }) => after.acceptedTs),
      changed.map(({ after }) => after.runningTs),
      changed.map(({ after }) => after.endedTs),
      changed.map(({ after }) => after.told.progress ?? null),
      changed.map(({ after }) => after.told.result ?? null),
      changed.map(({ after }) => after.told.text ?? null),
      changed.map(({ after }) => after.late && JSON.stringify(after.late)),
    ],
  });
  return rowCount === changed.length;
}
