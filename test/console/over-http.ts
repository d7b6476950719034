import { expect } from 'vitest';
import { checkPage, type Watched } from './browser.ts';

/** From the form to the first value, sent by the command that the page shows. */
export async function addOverHttp(watched: Watched): Promise<void> {
  const { page } = watched;
  await page.getByLabel('Name').fill('Meter');
  await page.getByLabel('HTTP').check();
  await page.getByRole('button', { name: 'Add the device' }).click();
  for (const [name, says] of [
    ['Python', 'from urllib.request import'],
    ['Arduino', 'HTTPClient http;'],
    ['MicroPython', 'import requests'],
    ['Terminal', 'curl -sS -u'],
  ] as const) {
    await page.getByRole('button', { name, exact: true }).click();
    await page.locator('.copy-text').getByText(says).waitFor();
  }
  await page.getByRole('button', { name: 'Show password' }).click();
  const line = (await page.locator('.copy-text').innerText()).replaceAll('\\\n', ' ');
  const [, login = '', address = '', body = ''] =
    /-u (\S+) .* (http:\S+) .*-d '(.*)'/.exec(line) ?? [];
  const Authorization = `Basic ${Buffer.from(login).toString('base64')}`;
  const headers = { Authorization, 'Content-Type': 'application/json' };
  const answer = await fetch(address, { method: 'POST', headers, body });
  expect(await answer.json()).toMatchObject({ stored: 1 });
  await page.getByText('It works. The first value is stored.').waitFor();
  await checkPage(watched, 'connect-http-phone');
  await page.getByRole('link', { name: 'Open the device' }).click();
  await page.locator('.device-seen').getByText('Connects to send · seen just now').waitFor();
}
