import type { ComponentChildren } from 'preact';
import { geoGraticule, geoMercator, geoPath, type GeoProjection } from 'd3-geo';
import { useMemo, useRef, useState } from 'preact/hooks';
import { feature } from 'topojson-client';
import type { Topology } from 'topojson-specification';
import land from 'world-atlas/land-110m.json';
import { session } from '../../../app/session.ts';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { Area, Located, Position } from './places.ts';
import { useWidth } from './plot.tsx';

export type MapProps = {
  /** The same in words. */
  label: string;
  /** Newest first. */
  track: readonly Located[];
  newest: Located;
  areas: readonly Area[];
};

/** Of a device's map, px. */
const usualHeight = 300;
/** Shorter tracks are drawn with their points. */
const mostPoints = 300;

/** The track of a device and the areas of its profile. */
export function PlaceMap({ label, track, newest, areas }: MapProps) {
  const all = useMemo(
    () => [newest, ...track, ...areas.flatMap(({ points }) => points)],
    [newest.ts, track.length, track[0]?.ts, areas.length],
  );
  return (
    <MapFrame label={label} all={all} whole={t('chart.mapWhole')}>
      {(projection) => {
        const [x = 0, y = 0] = projection([newest.long, newest.lat]) ?? [];
        return (
          <>
            {areas.map(({ name, points }, place) => (
              <AreaShape key={place} name={name} d={pathOf(projection, points, 'Z')} />
            ))}
            <path class="map-track" d={pathOf(projection, track)} />
            {track.length < mostPoints &&
              track.map((position) => {
                const [left, top] = projection([position.long, position.lat]) ?? [];
                return <circle key={position.ts} class="map-point" cx={left} cy={top} r={2} />;
              })}
            <circle class="map-newest" cx={x} cy={y} r={7} />
          </>
        );
      }}
    </MapFrame>
  );
}

type Show = (positions: readonly Position[]) => void;

type FrameProps = {
  /** The same in words. */
  label: string;
  /** What the whole view contains, and what its button is called. */
  all: readonly Position[];
  whole: string;
  height?: number;
  /** What is drawn on the map. */
  children?: (projection: GeoProjection) => ComponentChildren;
  /** What lies on top of it, as elements; `show` moves the map. */
  over?: (projection: GeoProjection, size: Size, show: Show) => ComponentChildren;
};

/** A map that can be moved and zoomed: of tiles if the service names a server of them, or the continents' outlines. */
export function MapFrame(props: FrameProps) {
  const { label, all, whole: wholeName, height = usualHeight, children, over } = props;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 640);
  const size = { width, height };
  const [chosen, setChosen] = useState<View | null>(null);
  const whole = useMemo(() => fit(all, size), [all, width]);
  const view = chosen ?? whole;
  const zoom = (by: number) => setChosen({ ...view, scale: boundScale(view.scale * by, size) });
  const projection = projectionOf(view, size);
  const { value } = session;
  const tiles = value.state === 'open' ? value.view.tiles : undefined;
  const [found, setFound] = useState<Found>('none');
  const [attempt, setAttempt] = useState(0);
  const hasTiles = tiles !== undefined && found === 'some';
  return (
    <>
      <div class="map-buttons">
        <button type="button" class="range" onClick={() => setChosen(null)}>
          {wholeName}
        </button>
        <button type="button" class="range" onClick={() => setChosen(wholeWorld(size))}>
          {t('chart.mapWorld')}
        </button>
        <button type="button" class="range" aria-label={t('chart.zoomIn')} onClick={() => zoom(2)}>
          +
        </button>
        <button
          type="button"
          class="range"
          aria-label={t('chart.zoomOut')}
          onClick={() => zoom(0.5)}
        >
          −
        </button>
      </div>
      <div class="map" ref={box} style={{ height: `${height}px` }}>
        {tiles && (
          <Tiles key={attempt} url={tiles.url} view={view} size={size} onFound={setFound} />
        )}
        <Drawing {...{ label, view, size, projection }} isBare={hasTiles} onMove={setChosen}>
          {children?.(projection)}
        </Drawing>
        {over?.(projection, size, (positions) => setChosen(fit(positions, size)))}
        {hasTiles && <p class="map-attribution">{tiles.attribution}</p>}
      </div>
      {found === 'away' && (
        <p class="fine" role="status">
          {t('chart.mapAway')}{' '}
          <button type="button" class="link" onClick={() => setAttempt(attempt + 1)}>
            {t('common.retry')}
          </button>
        </p>
      )}
    </>
  );
}

/** Whether tiles of the view have come; `away`: none of them did. */
type Found = 'none' | 'some' | 'away';

type TilesProps = { url: string; view: View; size: Size; onFound: (found: Found) => void };

/** The tiles of a view. Their server learns which installation asks, as many of them require. */
function Tiles({ url, view, size, onFound }: TilesProps) {
  const missing = useRef(new Set<string>());
  const tiles = tilesOf(view, size).map((tile) => ({
    ...tile,
    id: `${tile.z}/${tile.x}/${tile.y}`,
  }));
  const miss = (id: string) => {
    missing.current.add(id);
    if (tiles.every((tile) => missing.current.has(tile.id))) onFound('away');
  };
  return (
    <div class="map-tiles" aria-hidden="true">
      {tiles.map(({ id, z, x, y, left, top, px }) => (
        <img
          key={id}
          alt=""
          onLoad={() => onFound('some')}
          onError={() => miss(id)}
          referrerPolicy="origin"
          src={url.replace('{z}', `${z}`).replace('{x}', `${x}`).replace('{y}', `${y}`)}
          style={{ left: `${left}px`, top: `${top}px`, width: `${px + 0.5}px` }}
        />
      ))}
    </div>
  );
}

type DrawingProps = {
  label: string;
  view: View;
  size: Size;
  projection: GeoProjection;
  /** Tiles lie behind it. */
  isBare: boolean;
  onMove: (view: View) => void;
  children: ComponentChildren;
};

function Drawing({ label, view, size, projection, isBare, onMove, children }: DrawingProps) {
  const dragged = useRef<{ x: number; y: number }>(null);
  const land = useMemo(() => pathOfLand(projection), [view, size.width]);
  const grid = useMemo(() => pathOfGrid(projection, view, size), [view, size.width]);
  const move = ({ clientX, clientY }: PointerEvent) => {
    const { current: from } = dragged;
    if (!from) return;
    const middle: [number, number] = [
      size.width / 2 - clientX + from.x,
      size.height / 2 - clientY + from.y,
    ];
    dragged.current = { x: clientX, y: clientY };
    const [long, lat] = projection.invert?.(middle) ?? [];
    if (long !== undefined && lat !== undefined) onMove({ ...view, center: { lat, long } });
  };
  return (
    <svg
      class="map-drawing"
      style={{ height: `${size.height}px` }}
      viewBox={`0 0 ${size.width} ${size.height}`}
      role="img"
      aria-label={label}
      onPointerDown={({ pointerType, clientX, clientY, pointerId, currentTarget }) => {
        // A finger scrolls the page; for the map there are buttons.
        if (pointerType === 'touch') return;
        dragged.current = { x: clientX, y: clientY };
        currentTarget.setPointerCapture(pointerId);
      }}
      onPointerMove={move}
      onPointerUp={() => (dragged.current = null)}
    >
      {!isBare && (
        <>
          <path class="map-land" d={land} />
          <path class="map-grid" d={grid} />
        </>
      )}
      {children}
      <Scale view={view} height={size.height} />
    </svg>
  );
}

function AreaShape({ name, d }: { name: string; d: string }) {
  const [, x = '0', y = '0'] = /^M(-?[\d.]+),(-?[\d.]+)/.exec(d) ?? [];
  return (
    <>
      <path class="map-area" d={d} />
      <text class="map-name" x={Number(x) + 6} y={Number(y) - 6}>
        {name}
      </text>
    </>
  );
}

function Scale({ view, height: bottom }: { view: View; height: number }) {
  const { meters, px } = scaleBar(view);
  const text = meters < 1_000 ? `${formatNumber(meters)} m` : `${formatNumber(meters / 1_000)} km`;
  return (
    <g class="map-scale" transform={`translate(12 ${bottom - 12})`}>
      <path d={`M0,-5V0H${px.toFixed(1)}V-5`} />
      <text x={px / 2} y={-8}>
        {text}
      </text>
    </g>
  );
}

/** `scale`: pixels for a radian. */
export type View = { center: Position; scale: number };
export type Size = { width: number; height: number };

const topology = land as unknown as Topology;
const outlines = feature(topology, topology.objects['land'] as never);

const marginPx = 32;
/** About 200 m on each side: closer than that, positions are noise. */
const leastDegrees = 0.002;
/** Where Mercator's square ends. */
const mostLat = 85;

/** A view that contains all the positions. */
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

/** A tile of the usual scheme: its numbers, and where it lies in the view, px. */
type Tile = { z: number; x: number; y: number; left: number; top: number; px: number };

const tilePx = 256;
/** What most servers have. */
const mostZoom = 19;

/** The tiles that cover a view, at the zoom at which they are nearest to their own size. */
export function tilesOf({ center, scale }: View, { width, height }: Size): Tile[] {
  const worldPx = 2 * Math.PI * scale;
  const z = Math.min(Math.max(0, Math.round(Math.log2(worldPx / tilePx))), mostZoom);
  const all = 2 ** z;
  const px = worldPx / all;
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const north = Math.log(Math.tan(Math.PI / 4 + radians(center.lat) / 2));
  // The north-western corner of the world.
  const left = width / 2 - scale * (radians(center.long) + Math.PI);
  const top = height / 2 - scale * (Math.PI - north);
  const first = (from: number) => Math.max(0, Math.floor(-from / px));
  const tiles: Tile[] = [];
  for (let y = first(top); y < all && top + y * px < height; y += 1)
    for (let x = first(left); x < all && left + x * px < width; x += 1)
      tiles.push({ z, x, y, left: left + x * px, top: top + y * px, px });
  return tiles;
}

/** From 56° S to 75° N, in units of Mercator's map. */
const inhabited = 3.2;

export const wholeWorld = ({ width, height }: Size): View => ({
  center: { lat: 24, long: 10 },
  scale: Math.min(width / (2 * Math.PI), height / inhabited),
});

/** A pixel is about 10 cm: positions are no more precise. */
const nearest = 6e7;

/** From the whole world down to the spot where a device is. */
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

/** Lines of latitude and longitude, some hundred pixels apart. */
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
