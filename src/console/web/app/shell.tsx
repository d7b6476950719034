import { effect, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Dialog } from '../parts/dialog.tsx';
import { Icon, type IconName } from '../parts/icon.tsx';
import { Link } from '../parts/link.tsx';
import { Toast } from '../parts/panel.tsx';
import { formatDuration, formatNumber, formatTime } from '../text/format.ts';
import { count, plain, t } from '../text/t.ts';
import { allowShortcuts, goKeys, hasShortcuts, isHelpOpen, startKeyboard } from './keyboard.ts';
import { clockSkewMs } from './now.ts';
import { Preferences } from './preferences.tsx';
import { here, pieces } from './router.ts';
import { accountOf, leave } from './session.ts';
import { awaySince, openAlarms } from './stream.ts';

type Place = {
  to: string;
  page: string;
  icon: IconName;
  label: 'nav.fleet' | 'nav.alarms' | 'nav.rules' | 'nav.account';
};

/** The navigation. A new page gets its line here. */
const places: Place[] = [
  { to: '', page: 'fleet', icon: 'devices', label: 'nav.fleet' },
  { to: 'alarms', page: 'alarms', icon: 'alarm', label: 'nav.alarms' },
  { to: 'rules', page: 'rules', icon: 'list', label: 'nav.rules' },
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
        <Link to="" class="brand" aria-label={t('app.name')}>
          <span class="brand-mark">
            <Icon name="pulse" />
          </span>
          <span class="brand-name">{t('app.name')}</span>
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
        <WrongClock />
        {children}
      </main>
      <Toast />
      <Help />
    </div>
  );
}

/** This device's clock is wrong: times and ages go by the service's. */
function WrongClock() {
  const { value } = clockSkewMs;
  if (value === 0) return null;
  const time = formatDuration(Math.abs(value));
  return (
    <p class="away" role="status">
      {value < 0 ? t('clock.ahead', { time }) : t('clock.behind', { time })}
    </p>
  );
}

/** Following a link also moves the keyboard focus and the screen reader to the new page. */
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
      <span aria-hidden="true">{formatNumber(number)}</span>
      <span class="hidden">{count('nav.openAlarms', number)}</span>
    </span>
  );
}

/** Who is signed in, and what every page has in common. */
function Foot() {
  const menu = useClosing();
  return (
    <details class="foot" ref={menu}>
      <summary class="place">
        <Icon name="more" />
        <span class="hidden">{t('nav.menu')} </span>
        <span class="foot-email">{accountOf()?.email ?? ''}</span>
      </summary>
      <div class="foot-menu">
        <Preferences />
        <Zone />
        <a class="place" href="/docs">
          <Icon name="book" />
          <span>{t('nav.docs')}</span>
        </a>
        <button type="button" class="place place-keys" onClick={() => (isHelpOpen.value = true)}>
          <Icon name="keyboard" />
          <span>{t('keys.title')}</span>
        </button>
        <button type="button" class="place" onClick={() => void leave()}>
          <Icon name="leave" />
          <span>{t('nav.signOut')}</span>
        </button>
      </div>
    </details>
  );
}

/** Times are in the account's zone: says which, if this browser is in another. */
function Zone() {
  const zone = accountOf()?.timeZone;
  if (zone === undefined || zone === Intl.DateTimeFormat().resolvedOptions().timeZone) return null;
  return (
    <Link to="account/profile" class="place">
      <Icon name="clock" />
      <span>{t('nav.zone', { zone })}</span>
    </Link>
  );
}

/** A menu closes on Escape, on a click outside it, and when the page changes. */
function useClosing() {
  const menu = useRef<HTMLDetailsElement>(null);
  const { path } = here.value;
  useEffect(() => {
    const close = () => menu.current?.removeAttribute('open');
    close();
    const press = ({ key }: KeyboardEvent) => {
      if (key !== 'Escape' || !menu.current?.open) return;
      close();
      menu.current.querySelector('summary')?.focus();
    };
    const click = ({ target }: Event) => {
      if (!(target instanceof Node) || !menu.current?.contains(target)) close();
    };
    addEventListener('keydown', press);
    addEventListener('pointerdown', click);
    return () => {
      removeEventListener('keydown', press);
      removeEventListener('pointerdown', click);
    };
  }, [path]);
  return menu;
}

/** The keyboard shortcuts, and whether they are turned on. */
function Help() {
  if (!isHelpOpen.value) return null;
  const close = () => (isHelpOpen.value = false);
  const rows = [
    { keys: ['/'], text: t('keys.search') },
    ...goKeys.map(({ key, label }) => ({ keys: ['g', key], text: t(label) })),
    { keys: ['?'], text: t('keys.help') },
  ];
  return (
    <Dialog title={t('keys.title')} onClose={close}>
      <dl class="keys">
        {rows.map(({ keys, text }) => (
          <div key={text}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={hasShortcuts.value}
          onChange={({ currentTarget }) => allowShortcuts(currentTarget.checked)}
        />
        <span>{t('keys.allow')}</span>
      </label>
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={close}>
          {t('common.close')}
        </button>
      </div>
    </Dialog>
  );
}

const subject = signal('');

/** Shows the number of open alarms in the title and in the icon, so that it can be seen in a background tab. */
export function startTitle(): void {
  // The window's title follows the page's heading.
  new MutationObserver(() => {
    subject.value = document.querySelector('h1')?.textContent ?? '';
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  effect(() => {
    const name = t('app.name');
    const page = subject.value === '' ? name : `${plain(subject.value).slice(0, 80)} · ${name}`;
    const number = openAlarms.value;
    document.title = number > 0 ? `(${formatNumber(number)}) ${page}` : page;
  });
  effect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    if (icon) icon.href = iconWith(openAlarms.value);
  });
}

/** A drawing as a data URL, which the page's policy allows for images only. */
function iconWith(number: number): string {
  const mark =
    number === 0
      ? ''
      : '<circle cx="21" cy="21" r="11" fill="#b3261e" stroke="#fff" stroke-width="1.5"/>' +
        '<text x="21" y="25.5" text-anchor="middle" font-family="sans-serif" font-weight="700" ' +
        `font-size="${number > 9 ? 11 : 14}" fill="#fff">${number > 99 ? '99' : number}</text>`;
  const drawing =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
    '<rect width="32" height="32" rx="8" fill="#1558d6"/>' +
    '<path d="M7 17h4l3-8 5 15 3-7h3" fill="none" stroke="#fff" stroke-width="2.6" ' +
    `stroke-linecap="round" stroke-linejoin="round"/>${mark}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(drawing)}`;
}
