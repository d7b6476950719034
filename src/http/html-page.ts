import { Readable } from 'node:stream';
import { escapeHtml } from '../lib/escape-html.ts';
import { stream, type Streamed } from './answer.ts';
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
export function htmlPage(request: RequestInfo, text: PageText): Streamed {
  request.setHeader(
    'Content-Security-Policy',
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; " +
      "base-uri 'none'",
  );
  return stream('text/html; charset=utf-8', Readable.from([pageOf(text, readerLanguage(request))]));
}

/** A page of the service, without script; its form goes to where the page came from. */
function pageOf({ title, text, button, password, link }: PageText, language: string): string {
  const field =
    password === undefined
      ? ''
      : `<p><label>${escapeHtml(password)}<br><input name="password" type="password" ` +
        'autocomplete="new-password" minlength="8" maxlength="128" required></label></p>';
  const form =
    button === undefined
      ? ''
      : `<form method="post">${field}<button type="submit">${escapeHtml(button)}</button></form>\n`;
  const wayOn = link
    ? `<p><a href="${escapeHtml(link.to)}">${escapeHtml(link.text)}</a></p>\n`
    : '';
  return `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sensorium – ${escapeHtml(title)}</title>
<style>
body { font: 18px/1.5 sans-serif; max-width: 32em; margin: 3em auto; padding: 0 1em; color: #222; }
button, input { font: inherit; padding: .5em 1.5em; }
input { padding: .5em; }
</style>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${form}${wayOn}</html>
`;
}
