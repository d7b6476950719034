import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count, t } from '../text/t.ts';
import { formatTime } from '../text/format.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { Link } from '../parts/link.tsx';
import { Toast } from '../parts/toast.tsx';
import { Foot } from './foot.tsx';
import { Help } from './help.tsx';
import { startKeyboard } from './keyboard.ts';
import { openAlarms } from './open-alarms.ts';
import { here, pieces } from './router.ts';
import { awaySince } from './stream.ts';
import { shownCount } from './title.ts';

type Place = {
  to: string;
  page: string;
  icon: IconName;
  label: 'nav.fleet' | 'nav.alarms' | 'nav.account';
};

/** Where a person can go. Pages that are added get their line here. */
const places: Place[] = [
  { to: '', page: 'fleet', icon: 'devices', label: 'nav.fleet' },
  { to: 'alarms', page: 'alarms', icon: 'alarm', label: 'nav.alarms' },
  { to: 'account', page: 'account', icon: 'person', label: 'nav.account' },
];

export function Shell({ children }: { children: ComponentChildren }) {
  const content = useFocusOnArrival();
  useEffect(() => startKeyboard(), []);
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {t('app.skip')}
      </a>
      <header class="side">
        <Link to="" class="brand">
          <span class="brand-mark">
            <Icon name="pulse" />
          </span>
          {t('app.name')}
        </Link>
        <Places />
        <Foot />
      </header>
      <main id="content" class="content" tabIndex={-1} ref={content}>
        {awaySince.value !== null && (
          <p class="away" role="status">
            {t('stream.away', { time: formatTime(awaySince.value) })}
          </p>
        )}
        {children}
      </main>
      <Toast />
      <Help />
    </div>
  );
}

/** A link leads the keyboard and the screen reader to the new page, too, and not only the eye. */
function useFocusOnArrival() {
  const content = useRef<HTMLElement>(null);
  const { path } = here.value;
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current === path) return;
    shown.current = path;
    const { current } = content;
    if (!current?.contains(document.activeElement)) current?.focus({ preventScroll: true });
  }, [path]);
  return content;
}

function Places() {
  const [first = 'fleet'] = pieces.value;
  const page = first === 'devices' ? 'fleet' : first;
  return (
    <nav class="places" aria-label={t('nav.main')}>
      {places.map(({ to, page: name, icon, label }) => (
        <Link key={name} to={to} class="place" aria-current={page === name ? 'page' : undefined}>
          <Icon name={icon} />
          <span>{t(label)}</span>
          {name === 'alarms' && <OpenCount />}
        </Link>
      ))}
      <Link to="add" class="place place-add" aria-current={page === 'add' ? 'page' : undefined}>
        <Icon name="plus" />
        <span>{t('nav.add')}</span>
      </Link>
    </nav>
  );
}

function OpenCount() {
  const number = openAlarms.value;
  if (number === 0) return null;
  return (
    <span class="badge">
      <span aria-hidden="true">{shownCount(number)}</span>
      <span class="hidden">{count('nav.openAlarms', number)}</span>
    </span>
  );
}
