import type { Contacts } from '../../api/types.ts';
import { t } from '../../text/t.ts';

const names = ['email', 'webhook', 'push', 'sms'] as const;

/** Which ways of telling somebody this installation has, and what the others need. */
export function Channels({ contacts: { channels } }: { contacts: Contacts }) {
  return (
    <section class="panel" aria-labelledby="channels">
      <h3 id="channels">{t('channels.title')}</h3>
      <ul class="channels">
        {names.map((name) => (
          <li key={name}>
            <span class={channels[name] ? 'tag tag-ok' : 'tag'}>
              {t(channels[name] ? 'channels.on' : 'channels.off')}
            </span>
            <div>
              <p>{t(`channels.${name}`)}</p>
              <p class="fine">{t(`channels.${name}.${channels[name] ? 'on' : 'off'}`)}</p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
