/** The colours of tokens.css: a canvas does not know them by itself. */
export function colorsOf(): { ink: string; grid: string; line: string; band: string } {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of('--muted'),
    grid: of('--line'),
    line: of('--series-1'),
    band: of('--series-1-band'),
  };
}
