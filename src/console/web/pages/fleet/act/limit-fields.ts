import type { DeviceAction, Purpose, Sense } from '../../../api/types.ts';
import {
  changesOf,
  contradictions,
  marginOf,
  type ProfileLimit,
  severityChanges,
} from '../../watch/numbers.ts';

/** Devices with the same profile. */
export type Group = {
  /** Null: they have none, or one without purposes. */
  pId: string | null;
  devices: number;
  /** The name of one of them, and its senses. */
  example: string;
  senses: ReadonlyMap<string, Sense>;
  purposes: readonly Purpose[];
  /** Null: its numbers cannot be changed here. */
  limits: readonly ProfileLimit[] | null;
};

/** A group whose limits can be changed. */
export type LimitedGroup = Group & { pId: string; limits: readonly ProfileLimit[] };

export const isLimited = (group: Group): group is LimitedGroup =>
  group.limits !== null && group.pId !== null;

/** A limit of one or several profiles: the same sense, in the same unit, and the same direction. */
export type LimitField = {
  key: string;
  sense: Sense | undefined;
  /** In which groups, and the limit there; one at least. */
  of: { group: LimitedGroup; limit: ProfileLimit; place: number }[];
};

/** The limits that groups have, each once, in the order of the first group that has it. */
export function fieldsOf(groups: readonly LimitedGroup[]): LimitField[] {
  const fields = new Map<string, LimitField>();
  for (const group of groups)
    for (const [place, limit] of group.limits.entries()) {
      const key = keyOf(limit, group);
      const known = fields.get(key) ?? { key, sense: group.senses.get(limit.sId), of: [] };
      known.of.push({ group, limit, place });
      fields.set(key, known);
    }
  return [...fields.values()];
}

/**
 * What tells the limits of a profile apart, and means the same in another one. A limit that leads back to the first
 * state is a margin, and not a limit of the other direction. Of several alike only the same place means the same.
 */
function keyOf(limit: ProfileLimit, { limits, purposes, senses }: LimitedGroup): string {
  const isBack = ({ at, fromStId, toStId }: ProfileLimit) =>
    fromStId !== toStId && toStId === purposes[at[0]]?.initStId;
  const kind = (one: ProfileLimit) => [one.sId, one.which, isBack(one)].join(' ');
  const isOnly = limits.filter((other) => kind(other) === kind(limit)).length === 1;
  const { at, from, to } = limit;
  const place = isOnly ? [] : [at, from, to];
  return JSON.stringify([kind(limit), senses.get(limit.sId)?.unit, ...place]);
}

/** The number that a field has in all of its groups; undefined: not the same. */
export function commonOf({ of }: LimitField): number | undefined {
  const values = new Set(of.map(({ limit }) => limit.value));
  return values.size === 1 ? of[0]?.limit.value : undefined;
}

/** New numbers, by the key of the field; a group keeps its own where there is none. */
export type Numbers = ReadonlyMap<string, number>;

const numbersIn = (group: LimitedGroup, numbers: Numbers): number[] =>
  group.limits.map((limit) => numbers.get(keyOf(limit, group)) ?? limit.value);

/** What is wrong with fields, by key. */
export function wrongIn(groups: readonly LimitedGroup[], numbers: Numbers): Map<string, string> {
  const wrong = groups.flatMap((group) =>
    contradictions(group.limits, numbersIn(group, numbers)).flatMap((text, place) => {
      const limit = group.limits[place];
      return limit && text !== '' ? [[keyOf(limit, group), text] as const] : [];
    }),
  );
  return new Map(wrong);
}

/** The margin of a limit (`marginOf`), if it is the same in all groups that have it; otherwise null. */
export function marginIn({ of }: LimitField, numbers: Numbers): number | null {
  const margins = of.map(({ group, place }) =>
    marginOf(group.limits, numbersIn(group, numbers), place),
  );
  return new Set(margins).size === 1 ? (margins[0] ?? null) : null;
}

type Limits = NonNullable<DeviceAction['limits']>;

/** What an action asks for, with other numbers and another severity; groups that nothing changes are left out. */
export const limitsOfGroups = (
  groups: readonly LimitedGroup[],
  numbers: Numbers,
  severity: Parameters<typeof severityChanges>[1] | undefined,
): Limits =>
  groups.flatMap((group) => {
    const changes = [
      ...changesOf(group, numbersIn(group, numbers)),
      ...(severity === undefined ? [] : severityChanges(group.purposes, severity)),
    ];
    return changes.length === 0 ? [] : [{ ifPId: group.pId, changes }];
  });
