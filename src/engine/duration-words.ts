/** Units of time, longest first. */
const units = [
  { ms: 86_400_000, short: 'd', word: 'days' },
  { ms: 3_600_000, short: 'h', word: 'hours' },
  { ms: 60_000, short: 'min', word: 'minutes' },
  { ms: 1_000, short: 's', word: 'seconds' },
] as const;

/** A duration in at most two units: "4 min 10 s", "2 d 3 h", "0 s". Milliseconds are left out. */
export function describeDuration(ms: number): string {
  let rest = Math.max(0, ms);
  const parts: string[] = [];
  for (const unit of units) {
    const count = Math.floor(rest / unit.ms);
    rest -= count * unit.ms;
    if (count > 0) parts.push(`${count} ${unit.short}`);
    // "1 h 5 s" has more detail than anybody needs: two units that follow each other are enough.
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}

// With fewer of a unit nobody sees it move: 180 minutes instead of 3 hours.
const fewest = 5;

/** How much of a duration has passed, in one unit: "3 of 10 minutes". What has only begun does not count. */
export function describeProgress(doneMs: number, ofMs: number): string {
  const fits = ({ ms }: { ms: number }) => ofMs >= fewest * ms && ofMs % ms === 0;
  const { ms, word } = units.find(fits) ?? units[3];
  const done = Math.floor(Math.min(Math.max(0, doneMs), ofMs) / ms);
  return `${done} of ${Math.floor(ofMs / ms)} ${word}`;
}
