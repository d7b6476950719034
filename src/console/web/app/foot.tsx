import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.tsx';
import { t } from '../text/t.ts';
import { isHelpOpen } from './keyboard.ts';
import { Preferences } from './preferences.tsx';
import { here } from './router.ts';
import { accountOf, leave } from './session.ts';

/** Who is signed in, and what is the same on every page. */
export function Foot() {
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

/** A menu closes by Escape, by a click beside it, and when the page changes. */
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
