import type { TargetedPointerEvent, TargetedWheelEvent } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { t } from '../../text/t.ts';
import { useWidth } from '../device/chart/plot.tsx';
import type { Rule, Selected } from './document.ts';
import { nameOfEvent, nameOfState } from './event-form.tsx';
import { layOut, nextPlace, type Place } from './layout.ts';
import { text } from './texts.ts';

type DiagramProps = {
  rule: Rule;
  selected: Selected | null;
  onSelect: (selected: Selected) => void;
};

/** The height of its frame, px, if there is that much to show. */
const tallest = 440;
const zoomStep = 1.25;
// A row is 24 px high then, the least that can be hit.
const leastZoom = 24 / 44;
const mostZoom = 2;

const isSame = (a: Selected, b: Selected | null) => a.stId === b?.stId && a.evId === b.evId;

/**
 * The states of a rule, and the events that lead from one to another. It is one stop of the Tab key; the arrow keys go
 * from place to place. The frame scrolls by itself, so that fingers and wheels move it as they move anything else.
 */
export function Diagram({ rule, selected, onSelect }: DiagramProps) {
  const frame = useRef<HTMLDivElement>(null);
  const inside = useWidth(frame, 400);
  const drawing = useMemo(() => layOut(rule), [rule]);
  const { width, height, boxes, places, arrows, begin } = drawing;
  // Null: as large as fits.
  const [chosen, setChosen] = useState<number | null>(null);
  const zoom = chosen ?? clamp(Math.min(1, inside / width, tallest / height));
  const zoomTo = useZoom(frame, zoom, setChosen);
  const drag = useDrag();
  const stop = places.find(({ at }) => isSame(at, selected)) ?? places[0];
  const move = (event: KeyboardEvent) => {
    const from = places.find(
      (place) => idOf(place) === (event.target as HTMLElement).dataset['id'],
    );
    const next = from && nextPlace(places, from, event.key);
    if (!next) return;
    event.preventDefault();
    frame.current?.querySelector<HTMLElement>(`[data-id="${idOf(next)}"]`)?.focus();
  };
  return (
    <div class="diagram">
      <div
        ref={frame}
        class="diagram-frame"
        role="group"
        aria-label={text('diagram.title')}
        style={{ maxHeight: `${tallest + 2}px` }}
        onKeyDown={move}
        onWheel={(event: TargetedWheelEvent<HTMLDivElement>) => {
          // Two fingers on a touchpad say so, too. Without it, the wheel scrolls.
          if (!event.ctrlKey) return;
          event.preventDefault();
          zoomTo(zoom * 2 ** (-event.deltaY / 200), event);
        }}
        {...drag}
      >
        <div class="diagram-sheet" style={{ width: `${width}px`, height: `${height}px`, zoom }}>
          <svg aria-hidden="true" width={width} height={height}>
            {begin && (
              <g class="diagram-begin">
                <circle cx={begin.x} cy={begin.y - 20} r="5" />
                <path class="diagram-line" d={`M${begin.x} ${begin.y - 16}v10`} />
                <path class="diagram-tip" d={tipAt(begin, 90).d} transform={tipAt(begin, 90).at} />
              </g>
            )}
            {arrows.map(({ at, line, tip, turn }) => (
              <g key={`${at.stId}/${at.evId}`} class={isSame(at, selected) ? 'is-selected' : ''}>
                <path class="diagram-line" d={line} />
                <path class="diagram-tip" d={tipAt(tip, turn).d} transform={tipAt(tip, turn).at} />
              </g>
            ))}
          </svg>
          {boxes.map(({ stId, isGlobal, ...area }) => (
            <div
              key={stId}
              class={isGlobal ? 'diagram-box is-global' : 'diagram-box'}
              style={styleOf(area)}
            />
          ))}
          {places.map((place) => (
            <button
              key={idOf(place)}
              type="button"
              data-id={idOf(place)}
              class={classOf(place)}
              style={styleOf(place)}
              tabIndex={place === stop ? 0 : -1}
              aria-pressed={isSame(place.at, selected)}
              onClick={() => onSelect(place.at)}
            >
              <Label rule={rule} place={place} />
            </button>
          ))}
        </div>
      </div>
      <div class="zooms">
        <button
          type="button"
          class="button button-icon"
          aria-label={t('chart.zoomOut')}
          disabled={zoom <= leastZoom}
          onClick={() => zoomTo(zoom / zoomStep)}
        >
          −
        </button>
        <button
          type="button"
          class="button button-icon"
          aria-label={t('chart.zoomIn')}
          disabled={zoom >= mostZoom}
          onClick={() => zoomTo(zoom * zoomStep)}
        >
          +
        </button>
        <button
          type="button"
          class="link"
          disabled={chosen === null}
          onClick={() => setChosen(null)}
        >
          {text('diagram.fit')}
        </button>
      </div>
    </div>
  );
}

const clamp = (zoom: number) => Math.min(mostZoom, Math.max(leastZoom, zoom));

const idOf = ({ at: { stId, evId } }: Place) => `${stId}/${evId ?? ''}`;

const classOf = ({ at, to }: Place) =>
  at.evId === undefined ? 'diagram-state' : to === undefined ? 'diagram-row' : 'diagram-event';

const styleOf = ({ x, y, width, height }: Omit<Place, 'at'>) => ({
  left: `${x}px`,
  top: `${y}px`,
  width: `${width}px`,
  height: `${height}px`,
});

const tipAt = ({ x, y }: { x: number; y: number }, turn: number) => ({
  d: 'M0 0l-9 -4.5v9z',
  at: `translate(${x} ${y}) rotate(${turn})`,
});

function Label({ rule, place: { at, to } }: { rule: Rule; place: Place }) {
  const state = rule.states.find(({ stId }) => stId === at.stId);
  const event = state?.events.find(({ evId }) => evId === at.evId);
  if (!state) return null;
  if (event) {
    const target = rule.states.find(({ stId }) => stId === to);
    return (
      <>
        <span class="diagram-name">{nameOfEvent(event)}</span>
        {target && <span class="hidden">→ {nameOfState(target)}</span>}
      </>
    );
  }
  return (
    <>
      <span class="diagram-name">{nameOfState(state)}</span>
      {state['isGlobal'] === true && <span class="diagram-note">{t('profile.everyState')}</span>}
      {state.stId === rule['initStId'] && <span class="hidden">{t('profile.first')}</span>}
    </>
  );
}

type Spot = { clientX: number; clientY: number };

/** Zooms so that what is at a spot stays there; without one, what is in the middle of the frame. */
function useZoom(
  frame: { current: HTMLDivElement | null },
  zoom: number,
  setZoom: (zoom: number) => void,
) {
  const anchor = useRef<{ x: number; y: number; zoom: number } | null>(null);
  useLayoutEffect(() => {
    const { current: at } = frame;
    const { current: kept } = anchor;
    anchor.current = null;
    if (!at || !kept) return;
    const factor = zoom / kept.zoom;
    at.scrollLeft = (at.scrollLeft + kept.x) * factor - kept.x;
    at.scrollTop = (at.scrollTop + kept.y) * factor - kept.y;
  }, [zoom]);
  return (next: number, spot?: Spot) => {
    const { current: at } = frame;
    if (!at) return;
    const { left, top } = at.getBoundingClientRect();
    const x = spot ? spot.clientX - left : at.clientWidth / 2;
    const y = spot ? spot.clientY - top : at.clientHeight / 2;
    anchor.current = { x, y, zoom };
    setZoom(clamp(next));
  };
}

/** Scrolls an element by dragging it with a mouse. What ends a drag is no click. */
function useDrag() {
  const from = useRef<{ x: number; y: number } | null>(null);
  const end = () => {
    from.current = null;
  };
  return {
    onPointerDown: ({ pointerType, button, clientX, clientY }: PointerEvent) => {
      if (pointerType === 'mouse' && button === 0) from.current = { x: clientX, y: clientY };
    },
    onPointerMove: (event: TargetedPointerEvent<HTMLDivElement>) => {
      const { currentTarget: at, pointerId, clientX, clientY } = event;
      const { current: last } = from;
      if (!last) return;
      const [right, down] = [clientX - last.x, clientY - last.y];
      // From here on all of it goes to the frame, the click at its end, too.
      if (!at.hasPointerCapture(pointerId)) {
        if (Math.hypot(right, down) < 5) return;
        at.setPointerCapture(pointerId);
      }
      at.scrollLeft -= right;
      at.scrollTop -= down;
      from.current = { x: clientX, y: clientY };
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}
