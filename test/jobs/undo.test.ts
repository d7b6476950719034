import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ask } from '../idempotency/repeat.ts';
import { thresholdPurpose } from '../journeys/app.ts';
import { type JobWorld, startJobWorld } from './world.ts';

// What a job says of the way back: which action, until when, and whether it was taken.

let world: JobWorld;
beforeAll(async () => void (world = await startJobWorld()));
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

type Told = Record<string, unknown> & { jobId: string; endedTs: number };

/** The account's jobs by their identifiers, as the list has them. */
async function told(): Promise<Map<unknown, Told>> {
  const { body } = await world.get('/v2/jobs');
  return new Map((body['jobs'] as Told[]).map((job) => [job.jobId, job]));
}

const profile = (isGt: number) => ({
  action: 'profile',
  purposes: [{ ...thresholdPurpose(1, isGt), name: `above ${isGt}` }],
});

async function run(body: object): Promise<string> {
  const started = await world.act(body);
  await world.finished(started);
  return String(started.body['jobId']);
}

const hourMs = 3_600_000;

test('a job says what takes it back, until when, and then what did', async () => {
  await world.register(3);
  const jobId = await run({ ...profile(8), filter: {} });
  const job = (await told()).get(jobId);
  const undo = job?.['undo'];
  expect([undo, job?.['by']]).toEqual([
    { action: 'restore', untilTs: Number(job?.endedTs) + hourMs },
    'session',
  ]);
  expect((await world.get(`/v2/jobs/${jobId}`)).body['undo']).toEqual(undo);

  const back = await run({ action: 'restore', jobId });
  const undone = (await told()).get(jobId);
  expect(undone).toMatchObject({ undoneBy: back });
  expect(undone).not.toHaveProperty('undo');
  expect((await world.get(`/v2/jobs/${jobId}`)).body).toMatchObject({ undoneBy: back });
  // The way back has a way back, too.
  expect((await told()).get(back)).toMatchObject({ undo: { action: 'restore' } });
  expect((await told()).get(back)).not.toHaveProperty('undoneBy');
});

test('only the same the other way round takes a job back, and only as a whole', async () => {
  await world.register(2);
  const jobId = await run({ action: 'label', labels: ['a'], filter: {} });
  // Other labels on the same devices.
  await run({ action: 'label', labels: ['b'], jobId });
  await run({ action: 'unlabel', labels: ['b'], jobId });
  expect((await told()).get(jobId)).toMatchObject({ undo: { action: 'unlabel' } });
  await world.whileNoneRuns(async () => {
    const { body } = await world.act({ action: 'unlabel', labels: ['a'], jobId });
    expect((await told()).get(jobId)).toMatchObject({ undoneBy: body['jobId'] });
    await world.stop(`/v2/jobs/${String(body['jobId'])}`);
  });
  expect((await told()).get(jobId)).toMatchObject({ undo: { action: 'unlabel' } });
  expect((await told()).get(jobId)).not.toHaveProperty('undoneBy');
});

test('what failed for every device takes nothing back', async () => {
  await world.register(2);
  const jobId = await run({ action: 'label', labels: ['a'], filter: {} });
  const back = await run({ action: 'unlabel', labels: ['a'], jobId });
  expect((await told()).get(jobId)).toMatchObject({ undoneBy: back });
  await world.db.query('update job set failed_more = done where uuid = $1', [back]);
  for (const job of [(await told()).get(jobId), (await world.get(`/v2/jobs/${jobId}`)).body]) {
    expect(job).toMatchObject({ undo: { action: 'unlabel' } });
    expect(job).not.toHaveProperty('undoneBy');
  }
});

test('nothing is offered once it is too late', async () => {
  await world.register(2);
  const jobId = await run({ action: 'label', labels: ['a'], filter: {} });
  const move = `update job set ended_at = ended_at - interval '1 hour' where uuid = $1`;
  await world.db.query(move, [jobId]);
  expect((await told()).get(jobId)).not.toHaveProperty('undo');
});

test('limits that labels bring are taken back, also if each device kept its own', async () => {
  await world.register(2);
  const jobId = await run({ action: 'label', labels: ['a'], filter: {} });
  const limits = { action: 'label-limits', change: { limits: [] } };
  await world.db.query(`update job set action = $2, kept_more = done where uuid = $1`, [
    jobId,
    JSON.stringify(limits),
  ]);
  expect((await told()).get(jobId)).toMatchObject({ kept: 2, undo: { action: 'restore' } });
});

test('nothing takes back what changed nothing, what removed devices, or what is forgotten', async () => {
  const [first = ''] = await world.register(2);
  const key = await world.makeKey({ scopes: ['devices:read', 'devices:write'] });
  const started = await world.act({ ...profile(8), filter: {} }, key);
  await world.finished(started);
  const jobId = String(started.body['jobId']);
  expect((await told()).get(jobId)).toMatchObject({ by: 'key', keyName: 'a program' });
  const { body: own } = await world.get(`/v2/jobs/${jobId}`, key);
  expect([own['by'], own['keyName']]).toEqual(['key', undefined]);
  // They have these purposes already.
  const again = await run({ ...profile(8), filter: {} });
  const removing = await run({ action: 'remove', deviceAuthUuids: [first] });
  const jobs = await told();
  expect(jobs.get(again)).toMatchObject({ done: 2, of: 2, failures: 0, kept: 2 });
  for (const each of [again, removing]) expect(jobs.get(each)).not.toHaveProperty('undo');
  expect(jobs.get(jobId)).toHaveProperty('undo');
  await world.db.query(`update job set devices = '{}' where uuid = $1`, [jobId]);
  expect((await told()).get(jobId)).not.toHaveProperty('undo');
});

test('of very many devices that keep what they had a thousand are named, and all are counted', async () => {
  const uuids = [...(await world.register(1_000)), ...(await world.register(3))];
  const { token } = world;
  const { purposes } = profile(8);
  for (const deviceAuthUuids of [uuids.slice(0, 1_000), uuids.slice(1_000)])
    await ask(world.url, {
      path: '/v2/devices/profile',
      token,
      body: { deviceAuthUuids, purposes },
    });
  const job = await world.finished(await world.act({ ...profile(8), filter: {} }));
  expect(job).toMatchObject({ done: 1_003, kept: 1_003, failed: [] });
  expect(job['keptDevices']).toHaveLength(1_000);
});
