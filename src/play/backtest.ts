import type { RecordedEvent } from '../contract/event.ts';
import type { Alarm, RuleOptions } from '../alarms/rules.ts';
import type { Purpose } from '../contract/purpose.ts';
import { compileProfile, type Profile } from '../engine/compile.ts';
import type { Listening } from '../engine/last-seen.ts';
import { type Arrivals, type History, mostCompared } from './history.ts';
import { type Caveat, Player } from './player.ts';

/** A backtest whose request was checked. Times in ms; `endTs` is inclusive. */
export type Backtest = {
  candidate: Purpose[];
  against: 'recorded' | { purposes: Purpose[] } | null;
  /** Events of the candidate (`from`) that are compared with others (`to`) than those of the same numbers. */
  map: { from: At; to: At }[];
  startTs: number;
  endTs: number;
  devices: { id: number; uuid: string; listening: Listening | undefined }[];
  rules: RuleOptions;
};

/** Why a device's result may differ from what would have happened. */
export type BacktestCaveat =
  Extract<Caveat, 'clock-break'> | 'no-arrivals' | 'listening-unknown' | 'not-all-compared';

type At = { puId: number; stId: number; evId: number };
type Spanned = At & { ts: number; closedTs?: number | null };

/** One line of the result: see `BacktestLine` in `schema.ts`. */
type Line = { kind: string } & Record<string, unknown>;

const dayMs = 86_400_000;
/** How long it is known when connectors listened. */
const listeningKnownMs = 31 * dayMs;

/**
 * Plays a profile on what devices measured, one device after the other, and gives the result line by line. `null`:
 * nothing to give yet, after a piece of work. `nowTs`: the service's time. `read` counts measurements that were read.
 */
export async function* runBacktest(
  history: History,
  backtest: Backtest,
  nowTs: number,
  read: { values: number },
): AsyncGenerator<Line | null> {
  const { candidate, against, startTs, endTs, devices } = backtest;
  const profile = compileProfile('', candidate);
  const other =
    against !== null && against !== 'recorded' ? compileProfile('', against.purposes) : null;
  const playedFromTs = findPlayedFrom(backtest);
  const total = { devices: 0, values: 0, firings: 0, moves: 0, alarms: 0, differences: 0 };
  yield { kind: 'started', playedFromTs, startTs, endTs, devices: devices.length };
  for (const device of devices) {
    const run: DeviceRun = { history, backtest, device, playedFromTs, nowTs, read };
    const summary = yield* runDevice(run, profile, other);
    total.devices += 1;
    for (const name of ['values', 'firings', 'moves', 'alarms', 'differences'] as const)
      total[name] += summary[name];
    yield { kind: 'device', deviceAuthUuid: device.uuid, ...summary };
  }
  yield { kind: 'done', ...total };
}

/** Where playing begins, ms: before the range by the longest time that a cause looks back, at most 31 days. */
export function findPlayedFrom({
  candidate,
  against,
  startTs,
}: Pick<Backtest, 'candidate' | 'against' | 'startTs'>): number {
  const sides = [candidate];
  if (against !== null && against !== 'recorded') sides.push(against.purposes);
  const longestMs = Math.max(...sides.map((one) => longestTimeOf(compileProfile('', one))));
  return startTs - Math.min(longestMs, 31 * dayMs);
}

/** The longest time that evidence of this profile can have collected over, ms. */
function longestTimeOf({ purposes }: Profile): number {
  const times = [...purposes.values()].flatMap(({ states }) =>
    [...states.values()].flatMap(({ events }) =>
      events.flatMap(({ causes }) =>
        causes.flatMap(({ time }) => [
          time?.forMs ?? 0,
          time?.noneForMs ?? 0,
          time?.maxAgeMs ?? 0,
          time?.over?.ms ?? 0,
        ]),
      ),
    ),
  );
  return Math.max(0, ...times);
}

type DeviceRun = {
  history: History;
  backtest: Backtest;
  device: Backtest['devices'][number];
  playedFromTs: number;
  nowTs: number;
  read: { values: number };
};

type DeviceSummary = {
  values: number;
  firings: number;
  moves: number;
  alarms: number;
  differences: number;
  caveats: BacktestCaveat[];
};

async function* runDevice(
  run: DeviceRun,
  profile: Profile,
  other: Profile | null,
): AsyncGenerator<Line | null, DeviceSummary> {
  const { history, backtest, device, playedFromTs, nowTs } = run;
  const { against, startTs, endTs } = backtest;
  const range = { fromTs: startTs, untilTs: endTs + 1 };
  const caveats = new Set<BacktestCaveat>();
  const isTimed = profile.isTimed || other?.isTimed === true;
  if (isTimed && (!device.listening || playedFromTs < nowTs - listeningKnownMs))
    caveats.add('listening-unknown');
  if (await history.hasBreak(device.id, { ...range, fromTs: playedFromTs }))
    caveats.add('clock-break');
  const count = { values: 0, firings: 0, moves: 0, alarms: 0, differences: 0 };
  const own: Side = { firings: [], alarms: [] };
  const theirs: Side = { firings: [], alarms: [] };
  const sides = [{ profile, side: own }, ...(other ? [{ profile: other, side: theirs }] : [])];
  for await (const played of playDevice(run, sides, caveats)) {
    count.values += played.values;
    for (const line of played.lines) {
      if (line.kind === 'firing') count.firings += 1;
      else if (line.kind === 'move') count.moves += 1;
      else count.alarms += 1;
      yield { ...line, deviceAuthUuid: device.uuid };
    }
    yield null;
  }
  if (against === null) return { ...count, caveats: [...caveats] };
  if (!other) Object.assign(theirs, await listRecorded(history, device.id, range));
  if (
    [own, theirs].some(
      ({ firings, alarms }) => Math.max(firings.length, alarms.length) >= mostCompared,
    )
  )
    caveats.add('not-all-compared');
  for (const what of ['firings', 'alarms'] as const) {
    for (const difference of compare(own[what], theirs[what], backtest.map)) {
      count.differences += 1;
      const of = what === 'firings' ? 'firing' : 'alarm';
      yield { kind: 'difference', deviceAuthUuid: device.uuid, of, ...difference };
    }
    yield null;
  }
  return { ...count, caveats: [...caveats] };
}

/** What is compared of a profile, or of what was recorded. */
type Side = { firings: Spanned[]; alarms: Spanned[] };

async function listRecorded(history: History, deviceId: number, range: Arrivals): Promise<Side> {
  const { firings, alarms } = await history.listRecorded(deviceId, range);
  return { firings, alarms: alarms.map(({ sinceTs: ts, ...alarm }) => ({ ...alarm, ts })) };
}

/** So many values are played between two looks at what resulted. */
const valuesAtOnce = 5_000;

/**
 * Plays profiles on a device, which is read once for all. Adds to each one's `side` what lies in the range, and gives
 * that of the first as lines now and then.
 */
async function* playDevice(
  { history, backtest, device, playedFromTs, read }: DeviceRun,
  sides: readonly { profile: Profile; side: Side }[],
  caveats: Set<BacktestCaveat>,
): AsyncGenerator<{ values: number; lines: Line[] }> {
  const { startTs, endTs, rules } = backtest;
  const players = sides.map(({ profile, side }) => {
    const identity = { deviceId: device.id, uuid: device.uuid, accountId: 0 };
    const player = new Player({ device: identity, limits: rules, rules });
    player.begin(profile, playedFromTs, device.listening);
    return { player, side };
  });
  const takeAll = () => players.map(({ player, side }) => take(player, side, startTs))[0] ?? [];
  const senses = new Set(sides.flatMap(({ profile }) => [...profile.senses.keys()]));
  const arrivals = { fromTs: playedFromTs, untilTs: endTs + 1 };
  let values = 0;
  for await (const piece of history.walk(device.id, arrivals, [...senses])) {
    if (!piece.areKnown) caveats.add('no-arrivals');
    for (let at = 0; at < piece.count;) {
      const end = piece.endOf(at, valuesAtOnce);
      for (const { player } of players) player.measure(piece, at, end);
      values += end - at;
      read.values += end - at;
      at = end;
      if (at === piece.count) break;
      yield { values, lines: takeAll() };
      values = 0;
    }
  }
  for (const { player } of players) player.end(endTs);
  const lines = takeAll();
  const left = players.map(({ player, side }) => takeAlarms(player.alarms, side, startTs));
  yield { values, lines: [...lines, ...(left[0] ?? [])] };
}

function take(player: Player, side: Side, startTs: number): Line[] {
  const lines = [
    ...player.events.splice(0).map((event) => lineOf(event, true)),
    ...player.unrecorded.splice(0).map((event) => lineOf(event, false)),
  ].filter(({ arrivedTs, engine }) => (arrivedTs ?? engine.ts) >= startTs);
  for (const { kind, engine, record } of lines)
    // What is not recorded could not be found among what was.
    if (kind === 'firing' && record === true && side.firings.length < mostCompared) {
      const { puId, stId, evId, ts } = engine;
      side.firings.push({ puId, stId, evId, ts });
    }
  // Closed ones do not change any more.
  const closed = player.alarms.filter(({ closedTs }) => closedTs !== null);
  if (closed.length === 0) return lines;
  player.alarms.splice(0, Infinity, ...player.alarms.filter(({ closedTs }) => closedTs === null));
  return [...lines, ...takeAlarms(closed, side, startTs)];
}

function lineOf(event: RecordedEvent, record: boolean) {
  if (event.type === 'device') {
    const { event: what, newValue, oldValue, cause } = event;
    return {
      kind: 'move',
      engine: cause.engine,
      event: what,
      newValue,
      oldValue,
      arrivedTs: undefined,
      record: undefined,
    };
  }
  const { cause, why, arrivedTs } = event;
  return { kind: 'firing', engine: cause.engine, senses: cause.senses, why, arrivedTs, record };
}

function takeAlarms(alarms: readonly Alarm[], side: Side, startTs: number): Line[] {
  const within = alarms.filter(({ sinceTs }) => sinceTs >= startTs);
  return within.map(({ of, ...alarm }) => {
    const { sinceTs, lastFiringTs, firings, beganTs, overTs, closedTs, closedBy } = alarm;
    if (side.alarms.length < mostCompared) side.alarms.push({ ...of, ts: sinceTs, closedTs });
    const times = { sinceTs, lastFiringTs, firings, beganTs, overTs, closedTs, closedBy };
    return { kind: 'alarm', ...of, ...times };
  });
}

/** Of one firing or alarm, so many that begin before it, and after it, may be its partner. */
const mostCandidates = 16;
/** Two that are farther apart are not the same, ms. */
const apartMs = 300_000;

type Difference = At & { only?: 'candidate' | 'against'; ts: number; earlierMs?: number };

/**
 * How two sides differ, by time. Of the same event, one of each side is a pair if they overlap, or are at most five
 * minutes apart; those that overlap longest, or are closest, first. `map` says which are the same otherwise.
 * What has no partner is on one side `only`; a pair that does not begin together has `earlierMs`,
 * by how much the candidate is earlier (negative: later).
 */
export function compare(
  candidate: readonly Spanned[],
  against: readonly Spanned[],
  map: Backtest['map'] = [],
): Difference[] {
  const nameOf = ({ puId, stId, evId }: At) => `${puId}/${stId}/${evId}`;
  const others = new Map(map.map(({ from, to }) => [nameOf(from), nameOf(to)]));
  const taken = new Set(others.values());
  // An event of the candidate whose numbers `map` gives to another one has no partner.
  const nameOfOwn = (at: At) => others.get(nameOf(at)) ?? (taken.has(nameOf(at)) ? '' : nameOf(at));
  const theirs = Map.groupBy(against, nameOf);
  const differences: Difference[] = [];
  for (const [name, own] of Map.groupBy(candidate, nameOfOwn)) {
    differences.push(...compareOne(own, theirs.get(name) ?? []));
    theirs.delete(name);
  }
  for (const left of theirs.values()) differences.push(...compareOne([], left));
  return differences.toSorted((one, other) => one.ts - other.ts);
}

/** The same for one event. What came late is not in the order of its times. */
function compareOne(all: readonly Spanned[], theirs: readonly Spanned[]): Difference[] {
  const own = all.toSorted((one, another) => one.ts - another.ts);
  const ordered = theirs.toSorted((one, another) => one.ts - another.ts);
  const pairs: { a: number; b: number; overlapMs: number }[] = [];
  let from = 0;
  for (const [a, one] of own.entries()) {
    // Firings that lie before this one are before all later ones, too; an alarm may last until then.
    while (from < ordered.length && isOver(ordered[from] as Spanned, one)) from += 1;
    // Those that begin closest are enough: where there are more, each has one of its own.
    let nearest = from;
    while (nearest < ordered.length && (ordered[nearest] as Spanned).ts < one.ts) nearest += 1;
    const last = Math.min(ordered.length, nearest + mostCandidates);
    for (let b = Math.max(from, nearest - mostCandidates); b < last; b += 1) {
      const another = ordered[b] as Spanned;
      if (another.ts > endOf(one) + apartMs) break;
      const overlapMs = Math.min(endOf(one), endOf(another)) - Math.max(one.ts, another.ts);
      if (overlapMs >= -apartMs) pairs.push({ a, b, overlapMs });
    }
  }
  const ofOwn = new Map<number, Spanned>();
  const taken = new Set<number>();
  for (const { a, b } of pairs.toSorted((one, another) => another.overlapMs - one.overlapMs))
    if (!ofOwn.has(a) && !taken.has(b)) {
      ofOwn.set(a, ordered[b] as Spanned);
      taken.add(b);
    }
  const differences = own.flatMap((one, a): Difference[] => {
    const partner = ofOwn.get(a);
    if (!partner) return [{ ...atOf(one), only: 'candidate' }];
    return partner.ts === one.ts ? [] : [{ ...atOf(one), earlierMs: partner.ts - one.ts }];
  });
  const alone = ordered.filter((_, b) => !taken.has(b));
  return [...differences, ...alone.map((one) => ({ ...atOf(one), only: 'against' as const }))];
}

const atOf = ({ puId, stId, evId, ts }: Spanned) => ({ puId, stId, evId, ts });
const isOver = (before: Spanned, { ts }: Spanned) => endOf(before) + apartMs < ts;
/** A firing is a moment; an alarm that is open lasts. */
const endOf = ({ ts, closedTs }: Spanned) =>
  closedTs === undefined ? ts : (closedTs ?? Number.MAX_SAFE_INTEGER);
