import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Link } from '../parts/link.tsx';
import { Empty, Problem, Skeleton, useReloadOnline } from '../parts/panel.tsx';
import { AlarmsPage } from '../pages/alarms/alarms-page.tsx';
import { FleetPage } from '../pages/fleet/fleet-page.tsx';
import { SessionEnded, SignInPage } from '../pages/sign-in/sign-in-page.tsx';
import { t } from '../text/t.ts';
import { pieces } from './router.ts';
import { forgetEnded, openSession, session } from './session.ts';
import { Shell } from './shell.tsx';

/** The page of this URL. Without a session it shows the sign-in page, and afterwards the requested one. */
export function App() {
  const { value } = session;
  if (value.state === 'opening') return <p class="opening">{t('app.opening')}</p>;
  if (value.state === 'failed')
    return (
      <main class="opening">
        <Problem error={value.error} retry={() => void openSession()} />
      </main>
    );
  const account = value.view.account ?? value.ended;
  if (!account) return <SignInPage view={value.view} />;
  return (
    <>
      {/* Nothing that one person saw stays for another. */}
      <Shell key={account.accountAuthUuid}>{pageOf(pieces.value)}</Shell>
      {value.ended && <SessionEnded email={value.ended.email} onLeave={forgetEnded} />}
    </>
  );
}

function pageOf([first, second, ...more]: string[]): ComponentChildren {
  if (more.length > 0) return <NotFound />;
  if (first === undefined) return <FleetPage />;
  if (first === 'alarms' && second === undefined) return <AlarmsPage />;
  if (first === 'add' && second === undefined) return <Lazy key="add" load={loadAdd} />;
  if (first === 'account') return <Lazy key="account" load={loadAccount} uuid={second ?? ''} />;
  if (first === 'watch' && second !== undefined)
    return <Lazy key={`watch/${second}`} load={loadWatch} uuid={second} />;
  if (first === 'map' && second === undefined) return <Lazy key="map" load={loadMap} />;
  if (first === 'actions' && second === undefined) return <Lazy key="actions" load={loadActions} />;
  if (first === 'profiles' && second === undefined)
    return <Lazy key="profiles" load={loadProfiles} />;
  if (first === 'rules')
    return second === undefined ? (
      <Lazy key="rules" load={loadRules} />
    ) : (
      <Lazy key={`rules/${second}`} load={loadEditor} uuid={second} />
    );
  if (first === 'record' && second !== undefined)
    return <Lazy key={`record/${second}`} load={loadRecord} uuid={second} />;
  if (first === 'devices' && second !== undefined)
    return <Lazy key={second} load={loadDevice} uuid={second} />;
  return <NotFound />;
}

type Page = ComponentType<{ uuid: string }>;

const loadDevice = async (): Promise<Page> =>
  (await import('../pages/device/device-page.tsx')).DevicePage;
const loadAccount = async (): Promise<Page> =>
  (await import('../pages/account/account-page.tsx')).AccountPage;
const loadWatch = async (): Promise<Page> =>
  (await import('../pages/watch/watch-page.tsx')).WatchPage;
const loadMap = async (): Promise<Page> => (await import('../pages/map/map-page.tsx')).MapPage;
const loadActions = async (): Promise<Page> =>
  (await import('../pages/fleet/actions-page.tsx')).ActionsPage;
const loadProfiles = async (): Promise<Page> =>
  (await import('../pages/profiles/profiles-page.tsx')).ProfilesPage;
const loadRules = async (): Promise<Page> =>
  (await import('../pages/rules/rules-page.tsx')).RulesPage;
const loadEditor = async (): Promise<Page> =>
  (await import('../pages/rules/editor-page.tsx')).EditorPage;
const loadRecord = async (): Promise<Page> =>
  (await import('../pages/record/record-page.tsx')).RecordPage;
const loadAdd = async (): Promise<Page> => (await import('../pages/add/add-page.tsx')).AddPage;

/** A page whose script is loaded when it is first opened. */
function Lazy({ load, uuid = '' }: { load: () => Promise<Page>; uuid?: string }) {
  const [state, setState] = useState<{ Page?: Page; error?: unknown }>({});
  const read = () =>
    load().then(
      (Page) => setState({ Page }),
      (error: unknown) => setState({ error }),
    );
  useEffect(() => void read(), [load]);
  const { Page, error } = state;
  useReloadOnline(error !== undefined);
  if (Page) return <Page uuid={uuid} />;
  return error === undefined ? (
    <Skeleton lines={6} />
  ) : (
    <Problem error={error} retry={() => location.reload()} />
  );
}

function NotFound() {
  return (
    <>
      <h1 class="hidden">{t('app.notFound')}</h1>
      <Empty icon="search" title={t('app.notFound')} hint={t('app.notFoundHint')}>
        <Link to="" class="button button-main">
          {t('app.toFleet')}
        </Link>
      </Empty>
    </>
  );
}
