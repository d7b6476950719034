import type pg from 'pg';
import { call } from '../../bench/api.ts';
import { runOn } from '../support/template.ts';
import { expectedEvents, markOf } from './expected-events.ts';
import { measurementOf, sId, witnessPurpose } from './messages.ts';
import { agrees, countRejections } from './receipts.ts';
import { playAgain } from './play-again.ts';
import { hasProfile } from './register.ts';
import { unwatched, type WatchVerdict } from './watch/watch.ts';
import type { World } from './world.ts';

/** The evidence: the load, its devices, and the service to ask. */
export type Witnessed = Pick<World, 'load' | 'devices' | 'pId' | 'accountToken'> & {
  cluster: Pick<World['cluster'], 'url'>;
  service: Pick<World['service'], 'url'>;
  watch?: Pick<NonNullable<World['watch']>, 'judge'> | null;
};

/** The outcome. All counts of what is wrong must be 0, and so must `toldAgain` if nothing was killed. */
export type Verdict = WatchVerdict & {
  sent: number;
  acknowledged: number;
  /** Those answered over HTTP. */
  overHttp: number;
  stored: number;
  /** Acknowledged and not stored. */
  lost: number;
  /** Stored and never sent, or with another value. */
  invented: number;
  doubled: number;
  /** Devices with a later message stored and an earlier one not. */
  reordered: number;
  /** Devices whose events differ from those that the engine gives for what is stored. */
  wrongEvents: number;
  /** HTTP answers that cannot be true of what was sent, and devices that stored something else than theirs say. */
  wrongReceipts: number;
  /** Devices for which REST differs from SQL. */
  restDiffers: number;
  /** Devices that were played again, and those for which that gives something else than was recorded. */
  playedAgain: number;
  playedOtherwise: number;
};

/** How many devices are compared over REST, which returns a thousand points a call. */
const askedOverRest = 20;

export async function judge(world: Witnessed): Promise<Verdict> {
  const { sent, acknowledged } = world.load.testimony();
  const verdict: Verdict = {
    sent: sent.reduce((sum, count) => sum + count, 0),
    acknowledged: acknowledged.reduce((sum, seqs) => sum + seqs.size, 0),
    overHttp: 0,
    stored: 0,
    lost: 0,
    invented: 0,
    doubled: 0,
    reordered: 0,
    wrongEvents: 0,
    wrongReceipts: sayWrong(world.load.receipts.wrong()),
    restDiffers: 0,
    playedAgain: 0,
    playedOtherwise: 0,
    ...((await world.watch?.judge()) ?? unwatched),
  };
  await runOn(world.cluster.url(), async (client) => {
    for (const [index, { uuid, accountToken }] of world.devices.entries()) {
      const stored = await readMeasurements(client, uuid);
      const seqs = new Set(stored.map(({ val }) => val));
      verdict.stored += stored.length;
      verdict.doubled += stored.length - seqs.size;
      const lost = [...(acknowledged[index] ?? [])].filter((seq) => !seqs.has(seq));
      verdict.lost += lost.length;
      if (lost.length > 0) {
        const way = world.load.receipts.of(index) ? 'HTTP' : 'MQTT';
        const rejections = await readRejections(client, uuid);
        sayWrong([`device ${index}, ${way}: ${JSON.stringify({ lost, rejections })}`], 'lost');
      }
      for (const { val, ts } of stored) {
        const given = measurementOf(world.load.startTs, val);
        if (val >= (sent[index] ?? 0) || ts !== given.ts) verdict.invented += 1;
      }
      // Sent in order over one connection at a time, so nothing may be stored before an earlier message.
      if (stored.some(({ val }, place) => val !== place)) verdict.reordered += 1;
      const events = await readEvents(client, uuid);
      const expected = hasProfile(index)
        ? expectedEvents(
            world.pId,
            [witnessPurpose],
            stored.map((row) => ({ sId, ...row })),
          )
        : [];
      if (JSON.stringify(events) !== JSON.stringify(expected)) verdict.wrongEvents += 1;
      const told = world.load.receipts.of(index);
      if (told) verdict.overHttp += acknowledged[index]?.size ?? 0;
      const open = (sent[index] ?? 0) - (acknowledged[index]?.size ?? 0);
      const rejections = told ? await countRejections(client, uuid) : 0;
      if (told && !agrees(told, { measurements: stored.length, rejections }, open))
        verdict.wrongReceipts += sayWrong([
          `device ${index}: ${JSON.stringify({ told, stored: stored.length, rejections, open })}`,
        ]);
      const token = accountToken ?? world.accountToken;
      if (
        index < askedOverRest &&
        (await differsOverRest(world.service.url, token, uuid, stored))
      ) {
        verdict.restDiffers += 1;
      }
    }
  });
  const { playedAgain, playedOtherwise } = await playAgain(world.cluster.url(), Date.now);
  Object.assign(verdict, { playedAgain });
  verdict.playedOtherwise = sayWrong(playedOtherwise, 'played otherwise');
  return verdict;
}

type Stored = { val: number; ts: number };

async function readMeasurements(client: pg.Client, uuid: string): Promise<Stored[]> {
  const { rows } = await client.query<{ val: number; ms: string }>(
    `select m.val, extract(epoch from m.ts) * 1000 as ms
       from measurement m join series s on s.id = m.series_id join device d on d.id = s.device_id
      where d.uuid = $1 order by m.ts`,
    [uuid],
  );
  return rows.map(({ val, ms }) => ({ val, ts: Number(ms) }));
}

/** The first few of them, because a count alone would say too little. */
function sayWrong(receipts: string[], what = 'wrong receipt'): number {
  for (const each of receipts.slice(0, 5)) process.stderr.write(`    ${what}: ${each}\n`);
  return receipts.length;
}

/** What was acknowledged and rejected: the reason for a loss, if the service knows it. */
async function readRejections(client: pg.Client, uuid: string): Promise<unknown[]> {
  const { rows } = await client.query<{ r: unknown }>(
    `select to_jsonb(r) as r from rejection r join device d on d.id = r.device_id where d.uuid = $1`,
    [uuid],
  );
  return rows.map(({ r }) => r);
}

async function readEvents(client: pg.Client, uuid: string): Promise<string[]> {
  const { rows } = await client.query<{ type: string; ms: string; body: EventBody }>(
    `select e.type, extract(epoch from e.ts) * 1000 as ms, e.body
       from event e join device d on d.id = e.device_id
      where d.uuid = $1 and coalesce(e.body ->> 'event', '') <> 'purposeChanged'`,
    [uuid],
  );
  return rows
    .map(({ type, ms, body }) =>
      type === 'sense'
        ? markOf('sense', Number(ms), body.cause.engine.evId)
        : markOf(body.event, Number(ms), body.newValue),
    )
    .sort();
}

type EventBody = { event: string; newValue: number; cause: { engine: { evId: number } } };

async function differsOverRest(
  url: string,
  token: string,
  uuid: string,
  stored: Stored[],
): Promise<boolean> {
  const newest = stored.slice(-1_000).toReversed();
  const { measurements } = await call<{ measurements: (Stored & { sId: string })[] }>(
    url,
    'GET',
    `/v2/measurements/${uuid}?limit=1000`,
    { token },
  );
  const told = measurements.map(({ val, ts }) => ({ val, ts }));
  return JSON.stringify(told) !== JSON.stringify(newest);
}

/** The counts that must be 0. */
export function faultsOf(verdict: Verdict) {
  const {
    sent: _s,
    acknowledged: _a,
    overHttp: _h,
    stored: _d,
    playedAgain: _p,
    ...rest
  } = verdict;
  const { alarms: _n, toldAgain: _t, handOvers: _o, commands: _c, ...broken } = rest;
  return broken;
}

const { alarms: _n, toldAgain: _t, handOvers: _o, commands: _c, ...noWrongs } = unwatched;
/** What `faultsOf` returns if nothing went wrong. */
export const noFaults = {
  lost: 0,
  invented: 0,
  doubled: 0,
  reordered: 0,
  wrongEvents: 0,
  wrongReceipts: 0,
  restDiffers: 0,
  playedOtherwise: 0,
  ...noWrongs,
};
