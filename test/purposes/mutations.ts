/** JSON, as it is written by hand. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
type Members = { [name: string]: Json };

/** A purpose with one error. `mayWork`: it may happen to mean something else, and is then stored like that. */
export type Mutant = { kind: string; what: string; purpose: Json; mayWork: boolean };

type Place = { members: Members; name: string; around: Members[] };
type Random = (below: number) => number;
type Mutate = (places: Place[], random: Random, purpose: Members) => string | null;

/** `each` mutants of every kind, from these purposes in rotation; always the same ones. */
export function mutations(purposes: Json[], each: number): Mutant[] {
  const random = createRandom(25);
  return Object.entries(kinds).flatMap(([kind, mutate]) => {
    const found: Mutant[] = [];
    while (found.length < each) {
      const purpose = structuredClone(purposes[found.length % purposes.length]) as Members;
      const what = mutate([...placesOf(purpose)], random, purpose);
      // A misplaced member, or one with another type, may be known there, and is then accepted.
      const mayWork = kind === 'misplaced' || kind === 'of a wrong type';
      if (what !== null) found.push({ kind, what, purpose, mayWork });
    }
    return found;
  });
}

/** Every member, with the objects around it, nearest first. */
function* placesOf(value: Json, around: Members[] = []): Generator<Place> {
  if (Array.isArray(value)) for (const item of value) yield* placesOf(item, around);
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) {
      yield { members: value, name, around };
      yield* placesOf(member, [value, ...around]);
    }
}

const kinds: Record<string, Mutate> = {
  misspelt(places, random) {
    const { members, name } = pick(places, random);
    const at = random(name.length);
    const wrong = [
      name.slice(0, at) + name.slice(at + 1),
      name.slice(0, at + 1) + name.slice(at),
      `${name.slice(0, at)}q${name.slice(at + 1)}`,
      name.toUpperCase(),
      `${name}s`,
    ][random(5)];
    if (!wrong || wrong in members) return null;
    return rename(members, name, members, wrong);
  },
  misplaced(places, random) {
    const { members, name, around } = pick(places, random);
    const inside = Object.values(members).filter(isMembers);
    const [outer] = around;
    const target = pick([...inside, ...(outer ? [outer] : [])], random);
    if (!target || target === members[name] || name in target) return null;
    return rename(members, name, target, name);
  },
  'of a wrong type'(places, random) {
    const { members, name } = pick(places, random);
    const value = members[name];
    const others: Json[] = [7, 'seven', true, null, [], {}, ['x'], [[]]];
    const wrong = pick(
      others.filter((other) => typeOf(other) !== typeOf(value)),
      random,
    );
    members[name] = wrong;
    return `${name}: ${JSON.stringify(value)} -> ${JSON.stringify(wrong)}`;
  },
  'out of range'(places, random) {
    const wrong: Record<string, Json[]> = {
      puId: [2 ** 31, 1.5],
      stId: [-(2 ** 31) - 1, 0.1],
      evId: [2 ** 40, 1.01],
      initStId: [2 ** 31, 77],
      orderId: [2 ** 31],
      count: [0, 1_001, 1.5],
      decimalAcc: [-1, 21],
      gotoStId: [77, 2 ** 31],
      lat: [91, -90.5],
      long: [181, -200],
    };
    const { members, name } = pick(
      places.filter((place) => place.name in wrong),
      random,
    );
    const value = pick(wrong[name] ?? [], random);
    members[name] = value;
    return `${name}: ${JSON.stringify(value)}`;
  },
  unreachable(places, random, purpose) {
    const states = purpose['states'] as Members[];
    // A global state needs nothing that leads to it.
    const found = pick(
      states.filter(({ stId, isGlobal }) => stId !== purpose['initStId'] && isGlobal !== true),
      random,
    );
    const stId = found?.['stId'];
    if (stId === undefined || random(2) === 0) {
      states.push({ stId: 90 + random(9), name: 'lost', events: [] });
      return 'a state that nothing leads to';
    }
    for (const { members, name } of places)
      if (name === 'gotoStId' && members[name] === stId) delete members[name];
    return `nothing leads to state ${JSON.stringify(stId)}`;
  },
  contradictory(places, random) {
    const causes = places.filter(({ name }) => name === 'thresholds');
    const events = places.filter(({ name }) => name === 'causes');
    const triangle = [0, 1, 2].map((at) => ({ lat: at, long: at % 2 }));
    const round = [0, 120, -120].map((long) => ({ lat: 80, long }));
    const wrong: Json[] = [
      { isGt: 9, isLt: 1 },
      { isOneOf: [] },
      { isOneOf: [1], isNotIn: [1] },
      { isOneOf: [5], isGt: 5 },
      {},
      { isAny: false },
      { isGt: 1, isInsideGeo: triangle },
      { isInsideGeo: round },
    ];
    const actions: Json[] = [
      { sms: { text: 'x' } },
      { sms: { phoneNumber: ['+4201'] } },
      { engine: {} },
      { display: {} },
    ];
    const choice = random(wrong.length + actions.length + 1);
    const { members } = pick(choice < wrong.length ? causes : events, random);
    const value = wrong[choice] ?? actions[choice - wrong.length];
    if (choice < wrong.length) members['thresholds'] = value ?? {};
    else if (value) members['actions'] = value;
    else members['causes'] = [];
    return JSON.stringify(value ?? 'no causes');
  },
};

function rename(from: Members, name: string, to: Members, wrong: string): string {
  const value = from[name];
  delete from[name];
  if (value !== undefined) to[wrong] = value;
  return `${name} -> ${wrong}: ${JSON.stringify(value).slice(0, 60)}`;
}

const isMembers = (value: Json): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const typeOf = (value: Json | undefined) =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;

function pick<T>(list: T[], random: Random): T {
  return list[random(list.length)] as T;
}

/** Park and Miller's generator: the same numbers each time. */
function createRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return below === 0 ? 0 : state % below;
  };
}
