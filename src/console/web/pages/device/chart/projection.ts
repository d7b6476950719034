import { geoGraticule, geoMercator, geoPath, type GeoProjection } from 'd3-geo';
import { feature } from 'topojson-client';
import type { Topology } from 'topojson-specification';
import land from 'world-atlas/land-110m.json';
import type { Position } from './places.ts';

/** `scale`: pixels for a radian. */
export type View = { center: Position; scale: number };
export type Size = { width: number; height: number };

const topology = land as unknown as Topology;
const outlines = feature(topology, topology.objects['land'] as never);

const marginPx = 32;
/** About 200 m to each side: nearer than that positions are noise. */
const leastDegrees = 0.002;
/** Where Mercator's square ends. */
const mostLat = 85;

/** A view that holds all of some positions. */
export function fit(positions: readonly Position[], size: Size): View {
  const lats = positions.map(({ lat }) => Math.min(Math.max(lat, -mostLat), mostLat));
  const longs = positions.map(({ long }) => long);
  const [south, north] = [Math.min(...lats) - leastDegrees, Math.max(...lats) + leastDegrees];
  const [west, east] = [Math.min(...longs) - leastDegrees, Math.max(...longs) + leastDegrees];
  const corners = [
    [west, south],
    [east, north],
  ] as [number, number][];
  const projection = geoMercator().fitExtent(
    [
      [marginPx, marginPx],
      [size.width - marginPx, size.height - marginPx],
    ],
    { type: 'MultiPoint', coordinates: corners },
  );
  const [long = 0, lat = 0] = projection.invert?.([size.width / 2, size.height / 2]) ?? [];
  return { center: { lat, long }, scale: projection.scale() };
}

/** From 56° S to 75° N, in units of Mercator's map. */
const inhabited = 3.2;

export const wholeWorld = ({ width, height }: Size): View => ({
  center: { lat: 24, long: 10 },
  scale: Math.min(width / (2 * Math.PI), height / inhabited),
});

/** A pixel is about 10 cm: positions have no more. */
const nearest = 6e7;

/** From the whole world on to where a device stands. */
export const boundScale = (scale: number, size: Size): number =>
  Math.min(Math.max(scale, wholeWorld(size).scale), nearest);

export function projectionOf({ center, scale }: View, { width, height }: Size): GeoProjection {
  return geoMercator()
    .center([center.long, center.lat])
    .scale(scale)
    .translate([width / 2, height / 2])
    .clipExtent([
      [-1, -1],
      [width + 1, height + 1],
    ]);
}

export const pathOfLand = (projection: GeoProjection): string =>
  geoPath(projection)(outlines) ?? '';

const lineDegrees = [30, 10, 5, 1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001];
const leastLinePx = 90;

/** Lines of latitude and longitude, some hundred pixels from each other. */
export function pathOfGrid(projection: GeoProjection, { center, scale }: View, size: Size): string {
  const pxOf = (degrees: number) => (degrees * Math.PI * scale) / 180;
  const step = lineDegrees.findLast((degrees) => pxOf(degrees) >= leastLinePx) ?? 30;
  const half = (Math.max(size.width, size.height) / pxOf(1)) * 0.6;
  const down = (value: number) => Math.floor(value / step) * step;
  const up = (value: number) => Math.ceil(value / step) * step;
  const bounds: [[number, number], [number, number]] = [
    [Math.max(-180, down(center.long - half)), Math.max(-mostLat, down(center.lat - half))],
    [Math.min(180, up(center.long + half)), Math.min(mostLat, up(center.lat + half))],
  ];
  const grid = geoGraticule()
    .step([step, step])
    .extent(bounds)
    .precision(step / 4);
  return geoPath(projection)(grid()) ?? '';
}

/** Positions as a line; `Z` closes it. */
export function pathOf(
  projection: GeoProjection,
  positions: readonly Position[],
  end = '',
): string {
  const points = positions.flatMap(({ lat, long }) => projection([long, lat]) ?? []);
  const texts: string[] = [];
  for (let place = 0; place < points.length; place += 2)
    texts.push(`${points[place]?.toFixed(1)},${points[place + 1]?.toFixed(1)}`);
  return texts.length === 0 ? '' : `M${texts.join('L')}${end}`;
}

const earthMeters = 6_371_000;
const lengths = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  .flatMap((n) => [n, n * 1_000])
  .concat([1e6, 2e6, 5e6]);
const mostScalePx = 120;

/** A round length that is about 100 px wide in the middle of the view. */
export function scaleBar({ center, scale }: View): { meters: number; px: number } {
  const meters = (earthMeters * Math.cos((center.lat * Math.PI) / 180)) / scale;
  const fitting = lengths.filter((length) => length / meters <= mostScalePx);
  const length = Math.max(1, ...fitting);
  return { meters: length, px: length / meters };
}
