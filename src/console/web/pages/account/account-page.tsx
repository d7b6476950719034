import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { accountOf } from '../../app/session.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { AccessSection } from './access-section.tsx';
import { AuditSection } from './audit-section.tsx';
import { ContactsSection } from './contacts-section.tsx';
import { KeysSection } from './keys-section.tsx';
import { DeleteSection, ProfileSection } from './profile-section.tsx';
import { SessionsSection } from './sessions-section.tsx';
import { UsageSection } from './usage-section.tsx';

const parts: Record<Section, ComponentType> = {
  profile: ProfileSection,
  contacts: ContactsSection,
  access: AccessSection,
  sessions: SessionsSection,
  keys: KeysSection,
  usage: UsageSection,
  audit: AuditSection,
  delete: DeleteSection,
};

/**
 * The account, one section at a time; each has a URL. On a phone the list of sections is a page of its own; on a wide
 * screen the list stands beside the first section.
 */
export function AccountPage({ uuid: name }: { uuid: string }) {
  const section = name === '' ? 'profile' : sections.find((each) => each === name);
  const heading = useRef<HTMLHeadingElement>(null);
  // Moves the focus to the chosen section, so that a screen reader reads it out like a new page.
  useEffect(() => {
    if (name !== '') heading.current?.focus({ preventScroll: true });
  }, [name]);
  if (section === undefined)
    return (
      <Empty icon="search" title={t('app.notFound')} hint={t('app.notFoundHint')}>
        <Link to="account" class="button button-main">
          {t('account.title')}
        </Link>
      </Empty>
    );
  const Part = parts[section];
  return (
    <div class={name === '' ? 'account account-list' : 'account'}>
      <div class="head account-head">
        <h1>{t('account.title')}</h1>
        <p class="muted account-email">{accountOf()?.email ?? ''}</p>
      </div>
      <nav class="account-nav" aria-label={t('account.sections')}>
        {sections.map((each) => (
          <Link
            key={each}
            to={`account/${each}`}
            class="place"
            aria-current={each === section ? 'page' : undefined}
          >
            <Icon name={icons[each]} />
            <span>{t(`account.${each}`)}</span>
          </Link>
        ))}
      </nav>
      <div class="account-part">
        <Link to="account" class="link account-back">
          <Icon name="back" />
          {t('account.title')}
        </Link>
        <h2 class="account-title" ref={heading} tabIndex={-1}>
          {t(`account.${section}`)}
        </h2>
        <Part key={section} />
      </div>
    </div>
  );
}

/** The sections of the account page, as in the URL: /console/account/contacts. */
export const sections = [
  'profile',
  'contacts',
  'access',
  'sessions',
  'keys',
  'usage',
  'audit',
  'delete',
] as const;
export type Section = (typeof sections)[number];

export const icons: Record<Section, IconName> = {
  profile: 'person',
  contacts: 'alarm',
  access: 'lock',
  sessions: 'devices',
  keys: 'key',
  usage: 'gauge',
  audit: 'list',
  delete: 'bin',
};
