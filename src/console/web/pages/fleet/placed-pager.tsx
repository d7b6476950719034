import { pageSize } from '../../api/devices.ts';
import { here, queryOf } from '../../app/router.ts';
import { Link } from '../../parts/link.tsx';
import { formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import type { FleetAnswer } from './use-fleet.ts';

/**
 * Which of how many are shown, to the next page, and back to the first; the page before is Back's. `isOld`: another
 * answer is under way, and this one's cursor is none of the new question.
 */
export function PlacedPager({ answer, isOld }: { answer: FleetAnswer; isOld: boolean }) {
  const { body, next, before } = answer;
  const shown = body.devices.length;
  const to = (changes: Record<string, string>) => {
    const query = new URLSearchParams(here.value.query);
    for (const name of ['cursor', 'from']) query.delete(name);
    for (const [name, value] of Object.entries(changes)) query.set(name, value);
    const text = query.toString();
    return here.value.path + (text === '' ? '' : `?${text}`);
  };
  return (
    <div class="pager">
      <p class="fine pager-place">
        {t('fleet.place', {
          first: formatNumber(before + 1),
          last: formatNumber(before + shown),
          of: formatNumber(Math.max(body.counts?.matching ?? 0, before + shown)),
        })}
      </p>
      {queryOf('cursor') !== '' && (
        <Link to={to({})} class="button">
          {t('common.first')}
        </Link>
      )}
      {next !== null &&
        (isOld ? (
          <button type="button" class="button" disabled>
            {t('common.next')}
          </button>
        ) : (
          <Link to={to({ cursor: next, from: String(before + pageSize) })} class="button">
            {t('common.next')}
          </Link>
        ))}
    </div>
  );
}
