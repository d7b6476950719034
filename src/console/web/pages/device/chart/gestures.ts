import { useEffect, useRef } from 'preact/hooks';
import { moveSpan, scaleSpan, showSpan } from './range.ts';
import type { Span } from './span.ts';

type Touched = Map<number, number>;

/** Fingers that move less than that touch a point. */
const leastPx = 10;

/**
 * Keys and fingers on a chart: arrows move it, + and - zoom; one finger across moves it, two zoom. `preview`:
 * what a gesture under way shows; null at its end, when the URL has it.
 */
export function useGestures(
  span: Span,
  insets: { left: number; right: number },
  preview: (span: Span | null) => void,
) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(span);
  latest.current = span;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    return listen(at, { insets, span: () => latest.current, preview });
  }, []);
  return box;
}

type Deps = {
  insets: { left: number; right: number };
  span: () => Span;
  preview: (span: Span | null) => void;
};

function listen(at: HTMLElement, { insets, span, preview }: Deps): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  const touched: Touched = new Map();
  let first = span();
  let began: number[] = [];
  let shown: Span | null = null;

  const part = (x: number) => {
    const { left, width } = at.getBoundingClientRect();
    return (x - left - insets.left) / Math.max(1, width - insets.left - insets.right);
  };
  const begin = () => {
    first = shown ?? span();
    began = [...touched.values()].map(part);
  };
  const drop = ({ pointerId }: PointerEvent) => {
    if (!touched.delete(pointerId)) return;
    if (touched.size > 0) return begin();
    if (shown) showSpan(shown);
    shown = null;
    preview(null);
  };
  at.addEventListener(
    'pointerdown',
    ({ pointerType, pointerId, clientX }) => {
      if (pointerType !== 'touch') return;
      touched.set(pointerId, clientX);
      begin();
    },
    { signal },
  );
  addEventListener(
    'pointermove',
    ({ pointerId, clientX }) => {
      if (!touched.has(pointerId)) return;
      touched.set(pointerId, clientX);
      const next = spanOf(first, began, [...touched.values()].map(part));
      const { width } = at.getBoundingClientRect();
      const movedPx = Math.abs((next.start - first.start) / (first.end - first.start)) * width;
      if (shown || movedPx > leastPx || touched.size > 1) preview((shown = next));
    },
    { signal },
  );
  addEventListener('pointerup', drop, { signal });
  addEventListener('pointercancel', drop, { signal });
  at.addEventListener('keydown', (event) => pressKey(event, span()), { signal });
  return () => gone.abort();
}

/** What is shown so that the times that were touched stay under the fingers. */
function spanOf(first: Span, [a = 0, b]: number[], [x = 0, y]: number[]): Span {
  if (b === undefined || y === undefined) return moveSpan(first, a - x);
  const by = Math.abs(b - a) / Math.max(0.02, Math.abs(y - x));
  const about = (a + b) / 2;
  return moveSpan(scaleSpan(first, by, about), (about - (x + y) / 2) * 1);
}

const keyStep = 0.25;

function pressKey(event: KeyboardEvent, span: Span): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const next = nextOf(event.key, span);
  if (!next) return;
  event.preventDefault();
  // A key that is held is one step for Back.
  showSpan(next, { replace: event.repeat });
}

function nextOf(key: string, span: Span): Span | null {
  switch (key) {
    case 'ArrowLeft':
      return moveSpan(span, -keyStep);
    case 'ArrowRight':
      return moveSpan(span, keyStep);
    case '+':
    case '=':
      return scaleSpan(span, 0.5);
    case '-':
      return scaleSpan(span, 2);
    default:
      return null;
  }
}
