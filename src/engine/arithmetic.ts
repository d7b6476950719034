import type { Position } from '../contract/measurement.ts';

type Point = { x: number; y: number };

/** A polygon's corners with longitudes that run on beyond ±180 instead of jumping. */
export type Polygon = { corners: Point[]; west: number; east: number };

/** How near to an edge, in degrees, counts as on it: about a tenth of a millimetre. */
const tolerance = 1e-9;

/**
 * Prepares a polygon for `isInside`. Each edge takes the shorter way round the globe, so one from
 * 170 to -170 crosses the 180th meridian; one that spans exactly 180 degrees is taken as it is written.
 */
export function preparePolygon(positions: Position[]): Polygon {
  const corners: Point[] = [];
  let x = positions[0]?.long ?? 0;
  let previous = x;
  for (const { lat, long } of positions) {
    x += shorterWay(long - previous);
    previous = long;
    corners.push({ x, y: lat });
  }
  const xs = corners.map((corner) => corner.x);
  return { corners, west: Math.min(...xs), east: Math.max(...xs) };
}

/** Whether a position lies in the polygon, its edges included. Latitude and longitude are a plane here. */
export function isInside(polygon: Polygon, { lat, long }: Position): boolean {
  const xs: number[] = [];
  const firstTurn = Math.ceil((polygon.west - long - tolerance) / 360);
  for (let x = long + firstTurn * 360; x <= polygon.east + tolerance; x += 360) xs.push(x);
  return xs.length > 0 && holdsAny(polygon.corners, xs, lat);
}

/** The same difference of two longitudes as an edge has it: the shorter way round the globe. */
export function shorterWay(degrees: number): number {
  if (degrees > 180) return degrees - 360;
  return degrees < -180 ? degrees + 360 : degrees;
}

/**
 * Whether the polygon holds any of these points, which lie 360 degrees apart, in one walk along its edges:
 * one that winds round the globe a thousand times has a thousand of them.
 */
function holdsAny(corners: Point[], xs: number[], y: number): boolean {
  // What an edge to the east of a point turns round is turned round for all points to the west of it.
  const turns = new Uint8Array(xs.length + 1);
  let from = corners.at(-1);
  if (!from) return false;
  for (const to of corners) {
    if (isAnyOnEdge(from, to, xs, y)) return true;
    if (from.y > y !== to.y > y) {
      const crossing = from.x + ((y - from.y) / (to.y - from.y)) * (to.x - from.x);
      const west = countBelow(xs, crossing);
      turns[west] = 1 - (turns[west] ?? 0);
    }
    from = to;
  }
  let inside = 0;
  for (let index = xs.length; index > 0; index--) {
    inside ^= turns[index] ?? 0;
    if (inside === 1) return true;
  }
  return false;
}

/** How many of the points lie to the west of a longitude. */
function countBelow(xs: number[], x: number): number {
  let count = Math.max(0, Math.min(xs.length, Math.ceil((x - (xs[0] ?? 0)) / 360)));
  while (count < xs.length && (xs[count] ?? x) < x) count += 1;
  while (count > 0 && (xs[count - 1] ?? x) >= x) count -= 1;
  return count;
}

function isAnyOnEdge(from: Point, to: Point, xs: number[], y: number): boolean {
  // Far more than rounding could make of it.
  const near = 2 * tolerance;
  if (y < Math.min(from.y, to.y) - near || y > Math.max(from.y, to.y) + near) return false;
  const east = Math.max(from.x, to.x) + near;
  for (let index = countBelow(xs, Math.min(from.x, to.x) - near); index < xs.length; index++) {
    const x = xs[index] ?? Infinity;
    if (x > east) return false;
    if (isOnEdge(from, to, x, y)) return true;
  }
  return false;
}

function isOnEdge(from: Point, to: Point, x: number, y: number): boolean {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const squared = dx * dx + dy * dy;
  const along = squared === 0 ? 0 : ((x - from.x) * dx + (y - from.y) * dy) / squared;
  const nearest = Math.min(1, Math.max(0, along));
  return Math.hypot(from.x + nearest * dx - x, from.y + nearest * dy - y) <= tolerance;
}
