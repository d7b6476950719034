/** The colours of tokens.css: a canvas does not know them by itself. */
export type Colors = Record<
  'ink' | 'grid' | 'line' | 'band' | 'limit' | 'mild' | 'alarm' | 'panel',
  string
>;

export function colorsOf(): Colors {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of('--muted'),
    grid: of('--line'),
    line: of('--series-1'),
    band: of('--series-1-band'),
    limit: of('--bad'),
    mild: of('--warn'),
    alarm: of('--bad-soft'),
    panel: of('--panel'),
  };
}
