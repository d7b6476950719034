import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { theme } from '../../../app/theme.ts';
import { language } from '../../../text/t.ts';
import { toColumns } from './columns.ts';
import type { PlotProps } from './plot-props.ts';
import { optionsOf, plotHeight } from './plot-options.ts';
import type { Span } from './span.ts';

/** Mean with the band of least to most. A table says the same. */
export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const latest = useRef(props);
  latest.current = props;
  const { series, span, limits, alarms } = props;
  const shown = theme.value;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    const made = new UPlot(optionsOf(at.clientWidth, latest), toColumns(latest.current.series), at);
    plot.current = made;
    show(made, latest.current.span);
    const resize = new ResizeObserver(() =>
      made.setSize({ width: at.clientWidth, height: plotHeight }),
    );
    resize.observe(at);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shown, language.value]);
  useEffect(() => {
    const { current: made } = plot;
    made?.batch(() => {
      made.setData(toColumns(series), false);
      show(made, latest.current.span);
    });
  }, [series]);
  useEffect(() => {
    if (plot.current) show(plot.current, span);
  }, [span.start, span.end]);
  useEffect(() => plot.current?.redraw(false, false), [limits, alarms]);
  return <div ref={box} class="chart-box" aria-hidden="true" />;
}

const show = (plot: UPlot, { start, end }: Span) =>
  plot.setScale('x', { min: start / 1_000, max: end / 1_000 });
