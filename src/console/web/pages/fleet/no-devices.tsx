import { CopyText } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';

/** Before the first device: how to come by one. */
export function NoDevices() {
  return (
    <>
      <div class="head">
        <h1>{t('fleet.title')}</h1>
      </div>
      <Empty icon="devices" title={t('fleet.empty')} hint={t('fleet.emptyHint')}>
        <Link to="add" class="button button-main">
          <Icon name="plus" />
          {t('nav.add')}
        </Link>
        <div class="empty-more">
          <p class="fine">{t('fleet.simulate')}</p>
          <CopyText
            label={t('fleet.simulate')}
            text={`npm run simulate -- --devices 20 --seconds 30 --url ${location.origin}`}
          />
        </div>
      </Empty>
    </>
  );
}
