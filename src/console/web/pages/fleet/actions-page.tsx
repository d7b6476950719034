import { asLeft } from '../../app/router.ts';
import { BackLink } from '../../parts/link.tsx';
import { Empty, Skeleton } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { JobList, useJobs } from './jobs.tsx';

/** Actions on many devices or alarms: who did what, when, with how many, and what can still be undone. */
export function ActionsPage() {
  const { all } = useJobs();
  return (
    <>
      <BackLink to={asLeft('')}>{t('device.back')}</BackLink>
      <div class="head">
        <h1>{t('jobs.title')}</h1>
      </div>
      <p class="fine">{t('jobs.hint')}</p>
      <section class="panel panel-flush jobs" aria-label={t('jobs.title')}>
        {all === undefined ? (
          <Skeleton lines={6} />
        ) : all.length === 0 ? (
          <Empty icon="devices" title={t('jobs.none')} hint={t('jobs.noneHint')} />
        ) : (
          <JobList of={all} />
        )}
      </section>
    </>
  );
}
