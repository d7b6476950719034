import type { Span } from './range.ts';
import type { Series } from './series.ts';
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
