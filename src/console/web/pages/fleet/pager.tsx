import { here } from '../../app/router.ts';
import { Link } from '../../parts/link.tsx';
import { t } from '../../text/t.ts';

/** To the next page, and back to the first; the page before is Back's. */
export function Pager({ next }: { next: string | null }) {
  const { path, query } = here.value;
  const cursor = query.get('cursor');
  if (next === null && cursor === null) return null;
  const at = (value: string | null) => {
    const changed = new URLSearchParams(query);
    if (value === null) changed.delete('cursor');
    else changed.set('cursor', value);
    const text = changed.toString();
    return path + (text === '' ? '' : `?${text}`);
  };
  return (
    <p class="pager">
      {cursor !== null && (
        <Link to={at(null)} class="button">
          {t('common.first')}
        </Link>
      )}
      {next !== null && (
        <Link to={at(next)} class="button">
          {t('common.next')}
        </Link>
      )}
    </p>
  );
}
