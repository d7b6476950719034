import { getUsage } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import { Answered } from '../../parts/panel.tsx';
import { formatNumber } from '../../text/format.ts';
import { locale, t, tryText } from '../../text/t.ts';

type Usage = { quota: string; limit: number; used: number | null };

/** How much of each quota is used; below, limits on single things. */
export function UsageSection() {
  const query = useQuery('account/usage', getUsage, { everyMs: 15_000 });
  return (
    <Answered query={query} lines={6}>
      {(usage) => {
        const counted = usage.filter((each): each is Counted => each.used !== null);
        const shares = [...counted].sort((a, b) => shareOf(b) - shareOf(a));
        return (
          <>
            <section class="panel">
              <p class="fine account-note">{t('usage.hint')}</p>
              <ul class="usage">
                {shares.map((each) => (
                  <Bar key={each.quota} {...each} />
                ))}
              </ul>
            </section>
            <details class="panel usage-limits">
              <summary>{t('usage.limits')}</summary>
              <dl>
                {usage
                  .filter(({ used }) => used === null)
                  .map(({ quota, limit }) => (
                    <div key={quota}>
                      <dt>{nameOf(quota)}</dt>
                      <dd>{amountOf(quota, limit)}</dd>
                    </div>
                  ))}
              </dl>
            </details>
          </>
        );
      }}
    </Answered>
  );
}

type Counted = Usage & { used: number };

const shareOf = ({ used, limit }: Counted) => used / limit;
const nameOf = (quota: string) => tryText(`quota.${quota}`, quota);

function Bar({ quota, used, limit }: Counted) {
  const share = Math.min(1, used / limit);
  const state = share >= 1 ? 'full' : share >= 0.8 ? 'high' : 'low';
  const amounts = t('usage.of', { used: amountOf(quota, used), limit: amountOf(quota, limit) });
  return (
    <li>
      <div class="usage-text">
        <span>{nameOf(quota)}</span>
        <span class="usage-amount">
          {state !== 'low' && <strong class={`usage-${state}`}>{t(`usage.${state}`)}</strong>}
          {amounts}
        </span>
      </div>
      <div
        class={`bar bar-${state}`}
        role="meter"
        aria-label={nameOf(quota)}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(used, limit)}
        aria-valuetext={amounts}
      >
        <div style={{ width: `${Math.max(share * 100, used > 0 ? 0.5 : 0)}%` }} />
      </div>
    </li>
  );
}

function amountOf(quota: string, number: number): string {
  return /bytes/i.test(quota) ? formatBytes(number) : formatNumber(number);
}

const sizes = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

function formatBytes(bytes: number): string {
  if (bytes < 1_024) return `${formatNumber(bytes)} B`;
  const power = Math.min(4, Math.floor(Math.log2(bytes) / 10));
  const options = {
    style: 'unit',
    unit: sizes[power] ?? 'byte',
    maximumSignificantDigits: 3,
  } as const;
  return new Intl.NumberFormat(locale(), options).format(bytes / 1024 ** power);
}
