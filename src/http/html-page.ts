import { Readable } from 'node:stream';
import { escapeHtml } from '../lib/escape-html.ts';
import { stream, type Streamed } from './answer.ts';
import { pageStyle, styleSource } from './page-style.ts';
import type { RequestInfo } from './request.ts';

/** What a page says; with `button` it asks to be sent back, with `password` together with a new password. */
export type PageText = {
  title: string;
  text: string;
  button?: string;
  password?: string;
  link?: { to: string; text: string };
};

/** What a browser asks for: German where it prefers that, else English. */
export function readerLanguage(request: RequestInfo): 'en' | 'de' {
  return /^\s*de\b/i.test(request.header('accept-language')) ? 'de' : 'en';
}

/** Answers with a page without script that may send nothing but its own form. */
export function htmlPage(request: RequestInfo, text: PageText, status = 200): Streamed {
  request.setHeader(
    'Content-Security-Policy',
    `default-src 'none'; style-src ${styleSource}; form-action 'self'; frame-ancestors 'none'; ` +
      "base-uri 'none'",
  );
  const page = pageOf(text, readerLanguage(request));
  return stream('text/html; charset=utf-8', Readable.from([page]), status);
}

/** A page of the service, without script; its form goes to where the page came from. */
function pageOf({ title, text, button, password, link }: PageText, language: string): string {
  const field =
    password === undefined
      ? ''
      : `<label>${escapeHtml(password)}<input name="password" type="password" ` +
        'autocomplete="new-password" minlength="8" maxlength="128" required></label>';
  const form =
    button === undefined
      ? ''
      : `<form method="post">${field}<button type="submit">${escapeHtml(button)}</button></form>\n`;
  const wayOn = link
    ? `<a class="button" href="${escapeHtml(link.to)}">${escapeHtml(link.text)}</a>\n`
    : '';
  return `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sensorium – ${escapeHtml(title)}</title>
<style>${pageStyle}</style>
<main>
<p class="brand"><span class="mark"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 12h4l3-8 4.5 16 3-8H21"/></svg></span>Sensorium</p>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${form}${wayOn}</main>
</html>
`;
}
