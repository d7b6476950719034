import type UPlot from 'uplot';
import type { Colors } from './colors.ts';
import type { Span } from './span.ts';
import type { Limit } from './thresholds.ts';

/** Behind all else: while an alarm of this sense was open. */
export function drawAlarms(plot: UPlot, alarms: readonly Span[], { alarm }: Colors): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = alarm;
  ctx.globalAlpha = 0.7;
  for (const { start, end } of alarms) {
    const at = (ts: number) =>
      Math.min(Math.max(plot.valToPos(ts / 1_000, 'x', true), bbox.left), bbox.left + bbox.width);
    const left = at(start);
    ctx.fillRect(left, bbox.top, Math.max(1, at(end) - left), bbox.height);
  }
  ctx.restore();
}

const mostLetters = 28;

/** A line for each limit, with the event that it is of. */
export function drawLimits(plot: UPlot, limits: readonly Limit[], colors: Colors): void {
  const { ctx, bbox } = plot;
  const { devicePixelRatio: pxRatio } = window;
  const { min = 0, max = 0 } = plot.scales['y'] ?? {};
  ctx.save();
  ctx.font = `${11 * pxRatio}px system-ui`;
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'right';
  ctx.lineWidth = pxRatio;
  for (const { value, name, isAlarm } of limits) {
    const color = isAlarm ? colors.limit : colors.mild;
    if (value < min || value > max) continue;
    const y = Math.round(plot.valToPos(value, 'y', true));
    ctx.strokeStyle = color;
    ctx.setLineDash([6 * pxRatio, 4 * pxRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    const right = bbox.left + bbox.width - 4 * pxRatio;
    const text = name.length > mostLetters ? `${name.slice(0, mostLetters)}…` : name;
    // Readable where the values pass behind it.
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * pxRatio;
    ctx.strokeStyle = colors.panel;
    ctx.strokeText(text, right, y - 2 * pxRatio);
    ctx.lineWidth = pxRatio;
    ctx.fillStyle = color;
    ctx.fillText(text, right, y - 2 * pxRatio);
  }
  ctx.restore();
}
