import { formatNumber } from '../text/format.ts';
import { Link } from './link.tsx';

export type Chip = { label: string; to: string; isOn: boolean; count?: number | undefined };

/** Filters as links: each is in the URL. */
export function Chips({ label, chips }: { label: string; chips: Chip[] }) {
  return (
    <nav class="chips" aria-label={label}>
      {chips.map(({ label, to, isOn, count }) => (
        <Link key={label} to={to} class="chip" aria-current={isOn ? 'true' : undefined}>
          {label}
          {count !== undefined && <span class="chip-count">{formatNumber(count)}</span>}
        </Link>
      ))}
    </nav>
  );
}
