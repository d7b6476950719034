import { useMemo, useRef, useState } from 'preact/hooks';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { Area } from './areas.ts';
import type { Located } from './places.ts';
import {
  boundScale,
  fit,
  pathOf,
  pathOfGrid,
  pathOfLand,
  projectionOf,
  scaleBar,
  wholeWorld,
  type Size,
  type View,
} from './projection.ts';
import { useWidth } from './use-width.ts';

export type MapProps = {
  /** The same in words. */
  label: string;
  /** Newest first. */
  track: readonly Located[];
  newest: Located;
  areas: readonly Area[];
};

const height = 300;
/** Fewer are drawn as points, too. */
const mostPoints = 300;

/** The way of a device, with the areas of its profile, on outlines of the continents: no server of maps is asked. */
export function PlaceMap({ label, track, newest, areas }: MapProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 640);
  const size = { width, height };
  const [chosen, setChosen] = useState<View | null>(null);
  const all = useMemo(
    () => [newest, ...track, ...areas.flatMap(({ points }) => points)],
    [newest.ts, track.length, track[0]?.ts, areas.length],
  );
  const whole = useMemo(() => fit(all, size), [all, width]);
  const view = chosen ?? whole;
  const zoom = (by: number) => setChosen({ ...view, scale: boundScale(view.scale * by, size) });
  return (
    <div class="map" ref={box}>
      <Drawing {...{ label, track, newest, areas, view, size, onMove: setChosen }} />
      <div class="map-buttons">
        <button type="button" class="range" onClick={() => setChosen(null)}>
          {t('chart.mapWhole')}
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
    </div>
  );
}

type DrawingProps = MapProps & { view: View; size: Size; onMove: (view: View) => void };

function Drawing({ label, track, newest, areas, view, size, onMove }: DrawingProps) {
  const dragged = useRef<{ x: number; y: number }>(null);
  const projection = projectionOf(view, size);
  const land = useMemo(() => pathOfLand(projection), [view, size.width]);
  const grid = useMemo(() => pathOfGrid(projection, view, size), [view, size.width]);
  const [x = 0, y = 0] = projection([newest.long, newest.lat]) ?? [];
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
      viewBox={`0 0 ${size.width} ${size.height}`}
      role="img"
      aria-label={label}
      onPointerDown={({ pointerType, clientX, clientY, pointerId, currentTarget }) => {
        // A finger scrolls the page; the buttons are for it.
        if (pointerType === 'touch') return;
        dragged.current = { x: clientX, y: clientY };
        currentTarget.setPointerCapture(pointerId);
      }}
      onPointerMove={move}
      onPointerUp={() => (dragged.current = null)}
    >
      <path class="map-land" d={land} />
      <path class="map-grid" d={grid} />
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
