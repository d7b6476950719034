import { expect, test } from 'vitest';
import { freeAbandonedJobs } from '../../src/db/jobs.ts';
import { deliverTask } from '../../src/notifications/old-jobs.ts';
import { useContacts } from './contact-fixtures.ts';
import * as given from './fixtures.ts';

const { db, start } = useContacts();

/** As a program without turns writes messages: each has a job, and none a time at which it is due. */
async function makeOld(): Promise<void> {
  await db().query(
    `with old as (update notification set due_at = null where state = 'queued' returning id)
     select graphile_worker.add_job($1, json_build_object('notificationId', id), max_attempts => 100)
       from old`,
    [deliverTask],
  );
}

test('what an older program has queued is sent once, whatever has become of it meanwhile', async () => {
  const { enqueue, close } = await start();
  await close();
  const owner = await given.givenDevice(db(), ['phone']);
  await enqueue(db(), [
    given.smsOf(owner, '+421'),
    given.smsOf(owner, '+422'),
    given.pushOf(owner),
  ]);
  await makeOld();
  await db().query(
    `update notification set state = 'sent' where device_id = $1 and recipient = '+422'`,
    [owner.deviceId],
  );
  const { driver, sent } = given.scriptedDriver();
  await start({ drivers: { push: driver, sms: driver } });
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
  await expect
    .poll(() =>
      db()
        .query('select from graphile_worker.jobs')
        .then(({ rows }) => rows),
    )
    .toEqual([]);
  expect(sent.map(({ recipient }) => recipient).toSorted()).toEqual(['+421', 'phone']);
});

test('the job of an older program that ended under it is freed, and its message sent once', async () => {
  const owner = await given.givenDevice(db());
  const { enqueue, close } = await start();
  await close();
  await enqueue(db(), [given.smsOf(owner, '+421')]);
  await makeOld();
  await db().query(
    `update graphile_worker._private_jobs set locked_at = now() - interval '1 hour', locked_by = 'dead'`,
  );
  await freeAbandonedJobs(db(), 120_000);
  const { driver, sent } = given.scriptedDriver();
  await start({ drivers: { push: driver, sms: driver } });
  await given.outcomesOf(db(), owner, ([o]) => o?.state === 'sent');
  expect(sent).toHaveLength(1);
});
