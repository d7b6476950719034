import { beforeEach, expect, test } from 'vitest';
import { makeOldMessagesDue, takeOldMessages } from '../../src/notifications/old-jobs.ts';
import { openTestDatabase } from '../support/database.ts';
import { makeJobTables } from '../support/old-jobs.ts';
import { useContacts } from './contact-fixtures.ts';
import * as given from './fixtures.ts';

const { db, url, start } = useContacts();

beforeEach(async () => {
  await makeJobTables(url());
});

/** Messages as 0.2.0 and 0.3.0 write them: each has a job, and none has a `due_at`. */
async function queueOld(owner: given.Owner, recipients: string[]): Promise<void> {
  const { enqueue, close } = await start();
  await close();
  await enqueue(
    db(),
    recipients.map((recipient) => given.smsOf(owner, recipient)),
  );
  await db().query(
    `with old as (update notification set due_at = null where state = 'queued' returning id)
     select graphile_worker.add_job(
              'deliver-notification', json_build_object('notificationId', id), max_attempts => 100)
       from old`,
  );
}

const countJobs = async () => (await db().query('select from graphile_worker.jobs')).rowCount;

/** Delivers until nothing waits, and returns the recipients. */
async function deliverAll(owner: given.Owner): Promise<string[]> {
  const { driver, sent } = given.scriptedDriver();
  await start({ drivers: { push: driver, sms: driver } });
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
  return sent.map(({ recipient }) => recipient).toSorted();
}

test('messages that an older version queued are sent once, whatever their state', async () => {
  const owner = await given.givenDevice(db());
  await queueOld(owner, ['+421', '+422', '+423']);
  await db().query(`update notification set state = 'sent' where recipient = '+422'`);
  expect(await deliverAll(owner)).toEqual(['+421', '+423']);
  expect(await countJobs()).toBe(0);
});

test('a job that an older version works on is left alone until that version must have ended', async () => {
  const owner = await given.givenDevice(db());
  await queueOld(owner, ['+421']);
  const lock = (age: string) =>
    db().query(
      `update graphile_worker._private_jobs set locked_at = now() - $1::interval, locked_by = 'older'`,
      [age],
    );
  const isDue = async () =>
    (await db().query('select from notification where due_at is not null')).rowCount === 1;
  await lock('1 minute');
  expect(await takeOldMessages(db(), Date.now())).toBe(true);
  expect([await isDue(), await countJobs()]).toEqual([false, 1]);
  await lock('3 minutes');
  expect(await deliverAll(owner)).toEqual(['+421']);
  expect(await countJobs()).toBe(0);
});

test('two processes that start at once take each message once', async () => {
  const owner = await given.givenDevice(db());
  await queueOld(owner, ['+421', '+422', '+423', '+424']);
  await Promise.all(Array.from({ length: 4 }, () => takeOldMessages(db(), Date.now())));
  expect(await deliverAll(owner)).toEqual(['+421', '+422', '+423', '+424']);
});

test('a role that row security hides the jobs from takes nothing: their own version delivers them', async () => {
  const owner = await given.givenDevice(db());
  await queueOld(owner, ['+421']);
  const role = `takes_nothing_${process.pid}`;
  await db().query(`create role ${role} login password 'x'`);
  await db().query(
    `grant usage on schema graphile_worker to ${role};
     grant all on all tables in schema graphile_worker to ${role}`,
  );
  const own = new URL(url());
  [own.username, own.password] = [role, 'x'];
  const restricted = openTestDatabase(own.href);
  expect(await takeOldMessages(restricted, Date.now())).toBe(false);
  await restricted.close();
  await db().query(`drop owned by ${role}; drop role ${role}`);
  expect(await countJobs()).toBe(1);
});

test('in a restored database, which has no jobs, they are due at once', async () => {
  const owner = await given.givenDevice(db());
  await queueOld(owner, ['+421']);
  await db().query('drop schema graphile_worker cascade');
  await makeOldMessagesDue(db());
  expect(await deliverAll(owner)).toEqual(['+421']);
});
