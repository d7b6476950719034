import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { t } from '../../text/t.ts';

/** From a device to what is told of it. */
export function WatchLink({ uuid }: { uuid: string }) {
  return (
    <p class="watch-link">
      <Link to={`watch/${uuid}`} class="link">
        <Icon name="alarm" />
        {t('watch.open')}
      </Link>
    </p>
  );
}
