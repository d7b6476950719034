import { cutText, type Purpose } from '../contract/purpose.ts';
import { joinWarnings, type Warning } from '../contract/warnings.ts';
import type { Sql } from '../db/sql.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import { listNewest, listThere, type Outcome, outcomeOf } from './change.ts';
import { type InstallDeps, nameOf, warnOfInstall } from './install.ts';
import { type AskedChange, hexOf, type Plan, planInstalls } from './plan.ts';

/*
 * What a change of many devices' profiles would do. It is bounded by bytes: a request may name 10,000 devices, each
 * with a profile of its own, and the new one may have 256 purposes with long names.
 */

/** A purpose of a profile, by its number and name. */
type Named = { puId: number; name: string };
/** A purpose of the same name that says something else; as a whole if there is room. */
type Changed = Named & { before?: Purpose; after?: Purpose };
type Replaced = { goes: Named[]; comes: Named[]; stays: Named[]; changed: Changed[] };

type ChangePreview = {
  differences: Plan['differences'];
  warnings: Warning[];
  /** Those of most devices first; what goes, comes and stays if the new one is installed. */
  profiles: ({ pId: string | null; devices: number } & Partial<Replaced>)[];
  devices: {
    deviceAuthUuid: string;
    outcome: Outcome | 'no-such-device';
    profile: number;
  }[];
};

/** Contents of profiles that a preview reads, and names of purposes and changed ones that it says, together. */
const mostReadBytes = 4 * 1024 * 1024;
const mostNamedBytes = 1024 * 1024;
const longestName = 100;

/**
 * What `planChange` and a job would do with these devices, as far as can be told now. Throws as `planInstalls` does.
 */
export async function previewChange(
  { db: sql, limitsOf, warnOfSms }: Pick<InstallDeps, 'db' | 'limitsOf' | 'warnOfSms'>,
  of: { accountId: number; uuids: readonly string[]; labels: readonly string[] | null },
  asked: AskedChange,
): Promise<ChangePreview> {
  const { accountId, uuids } = of;
  const plans = (await planInstalls(sql, of, asked, limitsOf(accountId))).map((plan) => {
    return { ...plan, to: hexOf(plan.text) };
  });
  const there = await listThere(sql, of);
  const ids = new Map(there.map(({ uuid, deviceId }) => [uuid, deviceId]));
  const newest = await listNewest(sql, [...ids.values()]);
  const found = uuids.map((uuid) => {
    const deviceId = ids.get(uuid);
    const own = newest.get(deviceId ?? 0);
    const planned = outcomeOf(plans, own);
    return deviceId === undefined
      ? { uuid, deviceId, own, install: undefined, outcome: 'no-such-device' as const }
      : { uuid, deviceId, own, install: planned.install, outcome: planned.outcome };
  });
  const groups = [
    ...Map.groupBy(
      found.filter(({ deviceId }) => deviceId !== undefined),
      ({ own }) => own?.contentId ?? null,
    ),
  ].toSorted(([, one], [, other]) => other.length - one.length);
  const places = new Map(groups.map(([contentId], place) => [contentId, place]));
  const replaced =
    'limits' in asked ? new Map<number | null, Replaced>() : await compare(sql, groups, plans);
  return {
    differences: plans.flatMap(({ differences }) => differences),
    warnings: await warnOf(plans),
    profiles: groups.map(([contentId, those]) => ({
      pId: those[0]?.own?.pId ?? null,
      devices: those.length,
      ...replaced.get(contentId),
    })),
    devices: found.map(({ uuid, deviceId, own, outcome }) => ({
      deviceAuthUuid: uuid,
      outcome,
      profile: deviceId === undefined ? -1 : (places.get(own?.contentId ?? null) ?? -1),
    })),
  };

  /** Of each profile on the devices that it would be installed on, or for one profile on all of them. */
  async function warnOf(all: typeof plans): Promise<Warning[]> {
    const warnings: Warning[][] = [];
    for (const plan of all) {
      const { purposes, pathOf } = plan;
      const those = found.filter(({ install }) => all.length === 1 || install === plan);
      const deviceIds = those.flatMap(({ deviceId }) => deviceId ?? []);
      const ofSms = () => warnOfSms(accountId, purposes, pathOf);
      const warned = await warnOfInstall(sql, { purposes, deviceIds, pathOf, ofSms });
      warnings.push(warned.warnings);
    }
    return joinWarnings(...warnings);
  }
}

type Group = readonly [contentId: number | null, devices: readonly unknown[]];

/** What the new purposes replace in each content, as far as there is room to say it. Contents of most devices first. */
async function compare(
  sql: Sql,
  groups: readonly Group[],
  [plan]: readonly Pick<Plan, 'purposes'>[],
): Promise<Map<number | null, Replaced>> {
  const contentIds = groups.flatMap(([id]) => id ?? []);
  const contents = await readContents(sql, contentIds);
  const after = byText(plan?.purposes ?? []);
  const replaced = new Map<number | null, Replaced>();
  let bytes = 0;
  let wholeBytes = 0;
  for (const [contentId] of groups) {
    const purposes = contentId === null ? [] : contents.get(contentId);
    if (!purposes) continue;
    const { successors, ...names } = differenceOf(byText(purposes), after);
    const changed = successors.map(({ from, to }): Changed => {
      const named = sayName(from.purpose);
      const size = Buffer.byteLength(from.text) + Buffer.byteLength(to.text);
      if (wholeBytes + size > mostNamedBytes) return named;
      wholeBytes += size;
      return { ...named, before: from.purpose, after: to.purpose };
    });
    const said = [
      ...names.goes,
      ...names.comes,
      ...names.stays,
      ...successors.map(({ from }) => sayName(from.purpose)),
    ];
    bytes += Buffer.byteLength(JSON.stringify(said));
    if (bytes > mostNamedBytes) break;
    replaced.set(contentId, { ...names, changed });
    await yieldToEventLoop();
  }
  return replaced;
}

/** Purposes by their JSON. */
const byText = (purposes: readonly Purpose[]): ReadonlyMap<string, Purpose> =>
  new Map(purposes.map((one) => [JSON.stringify(one), one]));

const sayName = (one: Purpose): Named => ({
  puId: one.puId,
  name: cutText(nameOf(one), longestName),
});

type WithText = { text: string; purpose: Purpose };

/** Which purposes go, come and stay; `successors`: those that another one of the same name follows. */
function differenceOf(
  before: ReadonlyMap<string, Purpose>,
  after: ReadonlyMap<string, Purpose>,
): Omit<Replaced, 'changed'> & { successors: { from: WithText; to: WithText }[] } {
  const coming = new Map<string, WithText[]>();
  for (const [text, purpose] of after) {
    if (before.has(text)) continue;
    const name = nameOf(purpose);
    coming.set(name, [...(coming.get(name) ?? []), { text, purpose }]);
  }
  const goes: Named[] = [];
  const stays: Named[] = [];
  const successors: { from: WithText; to: WithText }[] = [];
  for (const [text, purpose] of before) {
    if (after.has(text)) {
      stays.push(sayName(purpose));
      continue;
    }
    const to = coming.get(nameOf(purpose))?.shift();
    if (to) successors.push({ from: { text, purpose }, to });
    else goes.push(sayName(purpose));
  }
  const comes = [...coming.values()].flat().map(({ purpose }) => sayName(purpose));
  return { goes, comes, stays, successors };
}

/** The first of these contents that fit into the bytes of a preview. */
async function readContents(
  sql: Sql,
  contentIds: readonly number[],
): Promise<Map<number, Purpose[]>> {
  const { rows } = await sql.query<{ id: number; purposes: Purpose[] }>(
    `
      select c.id, c.purposes
        from profile_content c
        join (select id, sum(c.bytes) over (order by wanted.place) as so_far
                from unnest($1::bigint[]) with ordinality as wanted (id, place)
                join profile_content c using (id)) sized using (id)
       where so_far <= ${mostReadBytes}`,
    [contentIds],
  );
  return new Map(rows.map(({ id, purposes }) => [id, purposes]));
}
