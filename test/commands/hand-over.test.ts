import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCommandHandOver } from '../../src/commands/hand-over.ts';
import { findAnsweredCommands, saveCommandAnswers } from '../../src/commands/answers.ts';
import {
  addCommand,
  cancelCommand,
  expireCommands,
  forgetCommands,
} from '../../src/commands/store.ts';
import { answerCommand } from '../../src/contract/command.ts';
import type { AskedHow } from '../../src/contract/uplink.ts';
import { type App, startApp } from '../devices/app.ts';

let app: App;
let token: string;
/** Two processes of an installation. */
let processes: ReturnType<typeof createCommandHandOver>[];
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
  const { db, bus } = app;
  processes = [createCommandHandOver({ db, bus }), createCommandHandOver({ db, bus })];
});
afterAll(() => app.close());

type Device = Awaited<ReturnType<App['device']>>;

const actor = { by: 'session' as const, sessionId: null, address: null };
const limits = { commandsPerDevice: 1_000, commandsPerDay: 100_000 } as never;

async function give({ accountId, uuid }: Device, name: string, expiresTs?: number) {
  const commandId = crypto.randomUUID();
  const command = { name, ...(expiresTs === undefined ? {} : { expiresTs }) };
  const by = { actor, ts: Date.now() };
  const adding = { accountId, deviceUuid: uuid, commandId, command, limits, by };
  await app.db.transaction((tx) => addCommand(tx, adding));
  return commandId;
}

const nameOf = (payload: unknown) => (payload as { name: string }).name;

async function take(device: Device, how: AskedHow, process = 0) {
  const taken = await processes[process]?.take(device, how);
  return taken ? { name: nameOf(taken.payload), id: taken.command?.id ?? 0 } : null;
}

const nameTaken = async (device: Device, how: AskedHow, process = 0) =>
  (await take(device, how, process))?.name ?? null;

/** As if so much time had passed since the hand-overs. */
const passMs = (device: Device, ms: number) =>
  app.db.query(
    `update command set handed_at = handed_at - $2 * interval '1 ms' where device_id = $1`,
    [device.deviceId, ms],
  );

async function answer({ deviceId }: Device, commandId: string, state: 'accepted' | 'done') {
  const [found] = await findAnsweredCommands(app.db, [{ deviceId, commandId }]);
  if (!found) throw new Error('no such command');
  const after = answerCommand(found.progress, { state }, Date.now());
  return saveCommandAnswers(app.db, [{ ...found, after }]);
}

const stateOf = async (commandId: string) => {
  const { rows } = await app.db.query('select state from command where uuid = $1', [commandId]);
  return (rows[0] as { state: string }).state;
};

describe('a command', () => {
  test('is taken once, in the order in which they were given, and the next after a minute', async () => {
    const device = await app.device(token);
    for (const name of ['a', 'b', 'c']) await give(device, name);
    const both = await Promise.all([nameTaken(device, 'due', 0), nameTaken(device, 'due', 1)]);
    expect(both.toSorted()).toEqual(['a', null]);
    await passMs(device, 59_000);
    expect(await nameTaken(device, 'due', 1)).toBeNull();
    const [first] = await app.db
      .query(`select id from command where device_id = $1 and name = 'a'`, [device.deviceId])
      .then(({ rows }) => rows as { id: number }[]);
    await processes[0]?.delivered(device, first?.id ?? 0);
    await passMs(device, 1_001);
    expect(await nameTaken(device, 'due', 1)).toBe('b');
    expect(await nameTaken(device, 'due', 0)).toBeNull();
  });

  test('that was taken and not acknowledged is due again a minute later', async () => {
    const device = await app.device(token);
    await give(device, 'lost');
    expect(await nameTaken(device, 'due')).toBe('lost');
    expect(await nameTaken(device, 'due')).toBeNull();
    await passMs(device, 60_001);
    expect(await nameTaken(device, 'due')).toBe('lost');
  });

  test('comes again at a subscription until it is answered, the first of them first', async () => {
    const device = await app.device(token);
    const [a, b] = [await give(device, 'a'), await give(device, 'b')];
    expect(await nameTaken(device, 'subscribed')).toBe('a');
    await passMs(device, 60_001);
    const second = await take(device, 'subscribed', 1);
    expect(second?.name).toBe('a');
    await processes[1]?.delivered(device, second?.id ?? 0);
    expect(await stateOf(a)).toBe('sent');
    expect(await answer(device, a, 'accepted')).toBe(true);
    expect(await nameTaken(device, 'due')).toBe('b');
    expect(await nameTaken(device, 'subscribed')).toBe('b');
    expect(await answer(device, b, 'done')).toBe(true);
    expect(await nameTaken(device, 'subscribed')).toBeNull();
  });

  test('is acknowledged by its own device only', async () => {
    const [device, other] = [await app.device(token), await app.device(token)];
    const commandId = await give(device, 'mine');
    const taken = await take(device, 'due');
    await processes[0]?.delivered(other, taken?.id ?? 0);
    expect(await stateOf(commandId)).toBe('queued');
  });

  test('that has ended never leaves, and an acknowledgement does not bring it back', async () => {
    const device = await app.device(token);
    const { accountId, uuid: deviceAuthUuid } = device;
    const cancelled = await give(device, 'cancelled');
    const soon = await give(device, 'soon', Date.now() + 3_600_000);
    const taken = await take(device, 'subscribed');
    const by = { actor, ts: Date.now() };
    const cancel = () =>
      app.db.transaction((tx) =>
        cancelCommand(tx, accountId, { deviceAuthUuid, commandId: cancelled }, by),
      );
    expect(await cancel()).toMatchObject({ sent: true, command: { state: 'cancelled' } });
    expect(await cancel()).toMatchObject({ sent: true, command: { state: 'cancelled' } });
    await processes[0]?.delivered(device, taken?.id ?? 0);
    expect(await stateOf(cancelled)).toBe('cancelled');
    const expired = await expireCommands(app.db, Date.now() + 3_700_000);
    expect(expired.map(({ commandId }) => commandId)).toContain(soon);
    expect(await stateOf(soon)).toBe('expired');
    for (const how of ['due', 'again', 'subscribed'] as const)
      expect(await nameTaken(device, how)).toBeNull();
    await forgetCommands(app.db, Date.now() + 29 * 86_400_000);
    expect(await stateOf(cancelled)).toBe('cancelled');
    await forgetCommands(app.db, Date.now() + 31 * 86_400_000);
    const { rows } = await app.db.query('select name from command where device_id = $1', [
      device.deviceId,
    ]);
    expect(rows).toEqual([]);
  });

  test('is refused while a process of an earlier version runs', async () => {
    const device = await app.device(token);
    const earlier = new pg.Client({
      connectionString: app.database.url,
      application_name: 'sensorium-0a1b2c3d',
    });
    await earlier.connect();
    await expect(give(device, 'early')).rejects.toMatchObject({ code: 'conflict' });
    await earlier.end();
    const later = () => give(device, 'later');
    await expect
      .poll(() =>
        later().then(
          () => 'given',
          () => 'refused',
        ),
      )
      .toBe('given');
  });

  test('that somebody changed since it was read is not overwritten', async () => {
    const device = await app.device(token);
    const { deviceId, accountId, uuid: deviceAuthUuid } = device;
    const commandId = await give(device, 'both');
    const [found] = await findAnsweredCommands(app.db, [{ deviceId, commandId }]);
    if (!found) throw new Error('no such command');
    const by = { actor, ts: Date.now() };
    await app.db.transaction((tx) =>
      cancelCommand(tx, accountId, { deviceAuthUuid, commandId }, by),
    );
    const after = answerCommand(found.progress, { state: 'done' }, Date.now());
    expect(await saveCommandAnswers(app.db, [{ ...found, after }])).toBe(false);
    expect(await stateOf(commandId)).toBe('cancelled');
  });
});
