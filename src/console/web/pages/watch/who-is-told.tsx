import { getContacts } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { Contacts } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { Answered } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';

/** Those who are told: confirmed addresses, and webhooks. */
export function readyIn({ emails, webhooks }: Contacts): string[] {
  const confirmed = emails.filter(({ confirmed }) => confirmed);
  return [...confirmed.map(({ address }) => address), ...webhooks.map(({ url }) => url)];
}

/** Whom the messages reach: an alarm that nobody hears of is none. */
export function WhoIsTold() {
  const query = useQuery('account/contacts', getContacts);
  return (
    <section class="panel" aria-labelledby="who">
      <h2 id="who">{t('watch.who')}</h2>
      <Answered query={query}>
        {(contacts) => {
          const ready = readyIn(contacts);
          return (
            <>
              {ready.length === 0 ? (
                <p class="notice watch-nobody">
                  {t(contacts.emails.length === 0 ? 'watch.nobody' : 'watch.unconfirmed')}
                </p>
              ) : (
                <ul class="watch-who">
                  {ready.map((address) => (
                    <li key={address}>{address}</li>
                  ))}
                </ul>
              )}
              <Link to="account/contacts" class="button">
                {t(contacts.emails.length === 0 ? 'watch.addContact' : 'watch.contacts')}
              </Link>
            </>
          );
        }}
      </Answered>
    </section>
  );
}
