import { effect, signal } from '@preact/signals';
import { plain, t } from '../text/t.ts';
import { openAlarms } from './open-alarms.ts';

const subject = signal('');

/** How the number of open alarms is shown: no more than a hundred are listed. */
export const shownCount = (number: number): string => (number > 99 ? '99+' : String(number));

/** The open alarms are in the title and in the icon, also of a tab that nobody looks at. */
export function startTitle(): void {
  // Each page says in its heading what it is about: the window's title follows it.
  new MutationObserver(() => {
    subject.value = document.querySelector('h1')?.textContent ?? '';
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  effect(() => {
    const name = t('app.name');
    const page = subject.value === '' ? name : `${plain(subject.value).slice(0, 80)} · ${name}`;
    const number = openAlarms.value;
    document.title = number > 0 ? `(${shownCount(number)}) ${page}` : page;
  });
  effect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    if (icon) icon.href = iconWith(openAlarms.value);
  });
}

/** A drawing as a data address, which the page's policy allows for images alone. */
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
