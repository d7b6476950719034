import { formatTime } from '../../../text/format.ts';
import type { Span } from './span.ts';
import { thin } from './segments.ts';
import type { Segment } from './points.ts';

type StripProps = {
  label: string;
  segments: readonly Segment[];
  span: Span;
  look: 'state' | 'alarm';
};

/** Seen at the end of the strip, too; as chart.css has it. */
const leastPx = 3;

/** Parts of time beside each other, below the plots and as wide as they. */
export function Strip({ label, segments, span, look }: StripProps) {
  return (
    <div class="lane">
      <p class="lane-name">{label}</p>
      <ol class={`strip strip-${look}`} aria-label={label}>
        {thin(segments, span).map(({ start, end, text, tone }) => {
          const said = `${text}, ${formatTime(start)} – ${formatTime(end)}`;
          const left = `min(${partOf(start, span)}, calc(100% - ${leastPx}px))`;
          const place = { left, width: partOf(end, span, start) };
          return (
            <li key={`${start}-${text}`} class={`part tone-${tone}`} style={place} title={said}>
              <span aria-hidden="true">{text}</span>
              <span class="hidden">{said}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** Where a time is, or how long from another one, as a part of the width. */
export const partOf = (ts: number, { start, end }: Span, from = start): string =>
  `${((ts - from) / (end - start)) * 100}%`;
