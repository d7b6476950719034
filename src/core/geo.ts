import type { Position } from './measurement.ts';

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
  const firstTurn = Math.ceil((polygon.west - long - tolerance) / 360);
  for (let x = long + firstTurn * 360; x <= polygon.east + tolerance; x += 360) {
    if (holds(polygon.corners, x, lat)) return true;
  }
  return false;
}

function shorterWay(degrees: number): number {
  if (degrees > 180) return degrees - 360;
  return degrees < -180 ? degrees + 360 : degrees;
}

function holds(corners: Point[], x: number, y: number): boolean {
  let inside = false;
  let from = corners.at(-1);
  if (!from) return false;
  for (const to of corners) {
    if (isOnEdge(from, to, x, y)) return true;
    const crosses = from.y > y !== to.y > y;
    if (crosses && x < from.x + ((y - from.y) / (to.y - from.y)) * (to.x - from.x))
      inside = !inside;
    from = to;
  }
  return inside;
}

function isOnEdge(from: Point, to: Point, x: number, y: number): boolean {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const squared = dx * dx + dy * dy;
  const along = squared === 0 ? 0 : ((x - from.x) * dx + (y - from.y) * dy) / squared;
  const nearest = Math.min(1, Math.max(0, along));
  return Math.hypot(from.x + nearest * dx - x, from.y + nearest * dy - y) <= tolerance;
}
