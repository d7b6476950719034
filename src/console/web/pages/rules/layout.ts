import { Graph, layout } from '@dagrejs/dagre';
import { membersOf, type Rule, type Selected, type State } from './document.ts';

/** Left, top, width and height, px. */
type Area = { x: number; y: number; width: number; height: number };
type Point = { x: number; y: number };

/** Where a state or an event is; `to`: the state that the event moves the device to, if that is another one. */
export type Place = Area & { at: Selected; to?: number };
/** The line of an event, from its state to another: a path of SVG, where its tip is, and its direction, degrees. */
type Arrow = { at: Selected; line: string; tip: Point; turn: number };
type Layout = {
  width: number;
  height: number;
  /** Around the name of a state, and the events that stay in it. */
  boxes: (Area & { stId: number; isGlobal: boolean })[];
  places: Place[];
  arrows: Arrow[];
  /** Where the line that marks the first state ends. */
  begin: Point | null;
};

// Texts are cut to these: a name that changes moves nothing. A row is as high as a target of a finger.
const row = 44;
const boxWidth = 168;
const labelWidth = 128;
const margin = 28;

/** The other state that an event moves the device to; undefined if it stays, or goes to another rule. */
function targetOf(rule: Rule, { stId }: State, actions: unknown): number | undefined {
  const { gotoStId, gotoPuId } = membersOf(membersOf(actions)['engine']);
  if (gotoStId === stId || (gotoPuId !== undefined && gotoPuId !== rule['puId'])) return undefined;
  return rule.states.find((each) => each.stId === gotoStId)?.stId;
}

/**
 * Lays out the states of a rule, from the first one down, so that nothing lies on anything else. Events that move the
 * device are labels of arrows; others are rows of their state.
 */
export function layOut(rule: Rule): Layout {
  const { states } = rule;
  // Numbers may be doubled while somebody edits the JSON: one box each, and the first of them is meant.
  const isFirst = (state: State) => states.find(({ stId }) => stId === state.stId) === state;
  const drawn = states.filter(isFirst);
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ marginx: margin, marginy: margin, nodesep: 24, edgesep: 12, ranksep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  // The direction of a cycle depends on where it is entered.
  const begins = (state: State) => Number(state.stId === rule['initStId']);
  const ordered = drawn.toSorted((a, b) => begins(b) - begins(a));
  const events = drawn.flatMap((state) =>
    state.events
      .filter(({ evId }, place) => state.events.findIndex((each) => each.evId === evId) === place)
      .map((event) => ({
        at: { stId: state.stId, evId: event.evId },
        to: targetOf(rule, state, event['actions']),
      })),
  );
  const staysIn = (stId: number) =>
    events.filter(({ at, to }) => at.stId === stId && to === undefined);
  for (const { stId } of ordered) {
    const height = row * (1 + staysIn(stId).length);
    graph.setNode(nodeOf(stId), { width: boxWidth, height });
  }
  const moving = events.flatMap(({ at, to }) => (to === undefined ? [] : [{ at, to }]));
  const edgeOf = ({ at, to }: (typeof moving)[number]) =>
    ({ v: nodeOf(at.stId), w: nodeOf(to), name: String(at.evId) }) as const;
  for (const event of moving)
    graph.setEdge(edgeOf(event), { width: labelWidth, height: row, labelpos: 'c' });
  layout(graph);
  const boxes = drawn.map((state) => {
    const area = areaOf(graph.node(nodeOf(state.stId)));
    return { stId: state.stId, isGlobal: state['isGlobal'] === true, ...area };
  });
  const places: Place[] = boxes.flatMap(({ stId, x, y, width }) => [
    { at: { stId }, x, y, width, height: row },
    ...staysIn(stId).map(({ at }, place) => {
      return { at, x, y: y + row * (place + 1), width, height: row };
    }),
  ]);
  const arrows: Arrow[] = [];
  for (const event of moving) {
    const edge = graph.edge(edgeOf(event));
    places.push({ ...event, ...areaOf(edge) });
    arrows.push({ at: event.at, ...lineOf(edge.points ?? []) });
  }
  const first = boxes.find(({ stId }) => stId === rule['initStId']);
  const { width = 0, height = 0 } = graph.graph();
  return {
    width,
    height,
    boxes,
    places,
    arrows,
    begin: first ? { x: first.x + 20, y: first.y } : null,
  };
}

// Not the number alone: names of members that are numbers come first, in their order.
const nodeOf = (stId: number) => `s${stId}`;

/** Dagre gives centres. */
function areaOf({ x = 0, y = 0, width = 0, height = 0 }: Partial<Area>): Area {
  return { x: x - width / 2, y: y - height / 2, width, height };
}

/** A smooth line that begins and ends where the points do. */
function lineOf(points: readonly Point[]): Omit<Arrow, 'at'> {
  const say = ({ x, y }: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const [start = { x: 0, y: 0 }, ...rest] = points;
  const tip = rest.at(-1) ?? start;
  const bends = rest.slice(0, -1);
  const before = bends.at(-1) ?? start;
  const curves = bends.map((bend, place) => {
    const next = rest[place + 1] ?? tip;
    const isLast = place === bends.length - 1;
    const end = isLast ? tip : { x: (bend.x + next.x) / 2, y: (bend.y + next.y) / 2 };
    return `Q${say(bend)} ${say(end)}`;
  });
  const line = `M${say(start)}${curves.length === 0 ? `L${say(tip)}` : curves.join('')}`;
  const turn = (Math.atan2(tip.y - before.y, tip.x - before.x) * 180) / Math.PI;
  return { line, tip, turn };
}

const directions: Record<string, readonly [number, number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/** The nearest place in the direction of an arrow key; null if there is none, or the key is another one. */
export function nextPlace(places: readonly Place[], from: Place, key: string): Place | null {
  const direction = directions[key];
  if (!direction) return null;
  const [right, down] = direction;
  let nearest: Place | null = null;
  let least = Infinity;
  for (const place of places) {
    const x = place.x + place.width / 2 - from.x - from.width / 2;
    const y = place.y + place.height / 2 - from.y - from.height / 2;
    const ahead = x * right + y * down;
    const aside = Math.abs(x * down) + Math.abs(y * right);
    const distance = ahead + 2 * aside;
    if (ahead < 1 || aside > 4 * ahead || distance >= least) continue;
    nearest = place;
    least = distance;
  }
  return nearest;
}
