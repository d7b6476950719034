import type { Span } from './span.ts';
import type { Series } from './point.ts';
import type { Limit } from './thresholds.ts';

export type PlotProps = {
  series: Series;
  span: Span;
  limits: readonly Limit[];
  /** Alarms of this sense. */
  alarms: readonly Span[];
  onZoom: (span: Span) => void;
  /** What is under the pointer, of this or another chart; null: nothing. */
  onPoint: (seconds: number | null, mean: number | null) => void;
};
