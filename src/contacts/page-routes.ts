import { z } from 'zod';
import { htmlPage, readerLanguage } from '../http/html-page.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Database } from '../db/database.ts';
import type { AlarmsOfContacts } from './replace-contacts.ts';
import { readLinkToken, type LinkPurpose } from './links.ts';
import { contactPageWords } from './page-words.ts';
import { confirmContact, findAddress, unsubscribeContact } from './contacts.ts';

type PageDeps = { db: Database; linkKeys: readonly Buffer[]; alarms: AlarmsOfContacts };

/**
 * Where links in mails lead. GET shows a button and changes nothing, for mail scanners follow links; POST
 * does it, by the button or by the mail program itself (RFC 8058). Both can be done again.
 */
export function contactPageRoutes(deps: PageDeps): Route[] {
  return [
    ...routesOf('confirm', deps, ({ contactUuid, madeTs }, nowMs) =>
      deps.db.transaction(async (tx) => {
        const accountId = await confirmContact(tx, contactUuid, { madeTs, nowMs });
        if (accountId !== null) await deps.alarms.wake(tx, accountId, nowMs);
        return accountId !== null;
      }),
    ),
    ...routesOf('unsubscribe', deps, ({ contactUuid }, nowMs) =>
      unsubscribeContact(deps.db, contactUuid, nowMs),
    ),
  ];
}

function routesOf(
  purpose: LinkPurpose,
  { db, linkKeys }: PageDeps,
  perform: (link: { contactUuid: string; madeTs: number }, nowMs: number) => Promise<boolean>,
): Route[] {
  const answer = async (token: string, request: RequestInfo, isAsked: boolean) => {
    const nowMs = request.receivedTs;
    const link = readLinkToken(linkKeys, purpose, { token, nowMs });
    const address = link && (await findAddress(db, link.contactUuid));
    const { invalid, [purpose]: texts } = contactPageWords[readerLanguage(request)];
    if (!link || address === null) return htmlPage(request, invalid);
    if (!isAsked) return htmlPage(request, texts.ask(address));
    return htmlPage(request, (await perform(link, nowMs)) ? texts.done(address) : invalid);
  };
  return (['get', 'post'] as const).map((method) =>
    defineRoute({
      method,
      path: `/${purpose}`,
      summary: purpose,
      tag: 'Pages',
      auth: 'none',
      errors: [],
      hidden: true,
      query: z.object({ token: z.string().max(200).default('') }),
      response: z.unknown(),
      handler: ({ query, request }) => answer(query.token, request, method === 'post'),
    }),
  );
}
