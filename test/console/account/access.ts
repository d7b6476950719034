import { expect } from 'vitest';
import { linkIn } from '../../contacts/people.ts';
import { long, short } from '../../support/share.ts';
import { checkPage, openPage, signIn } from '../browser.ts';
import { makeAccount, person } from '../service.ts';
import { inDialog, press, type World } from './world.ts';

/** Signing in, out, and recovering an account: sessions, passwords, addresses, and deleting the account. */
export function testAccess(world: () => World): void {
  short('sessions say where they began, and can be ended', async () => {
    const own = { email: 'sessions@example.org', password: 'correct horse' };
    const token = await makeAccount(world().url, own);
    const { page } = await openPage(world().browser, 'light');
    await signIn(page, world().url, own);
    await page.goto(`${world().url}/console/account/sessions`);
    const rows = page.locator('.row');
    await page.getByText('Chrome on Linux').waitFor();
    await page.getByText('127.0.0.1').first().waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    const other = await world().open('sessions', 'light', own);
    await page.reload();
    await expect.poll(() => rows.count()).toBe(3);
    await press(page, 'End the 2 other sessions');
    await inDialog(page, 'End session');
    await expect.poll(() => rows.count()).toBe(1);
    expect(await world().statusOf(token)).toBe(401);
    await other.page.reload();
    await other.page.getByLabel('E-mail address').waitFor();
    await page.locator('.row').getByRole('button', { name: 'Sign out' }).click();
    await inDialog(page, 'End session');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.context().close();
    await other.page.context().close();
  });

  short('changing the password signs out everything else, and this page stays', async () => {
    const { page, own, token } = await world().open('access');
    const change = async (old: string) => {
      await page.getByLabel('Current password', { exact: true }).fill(old);
      await page.getByLabel('New password', { exact: true }).fill('battery staple');
      await press(page, 'Change password');
    };
    await change('a wrong one');
    await page.getByText('The password is wrong.').waitFor();
    await change(own.password);
    await page.getByText('The password was changed.').waitFor();
    expect(await world().statusOf(token)).toBe(401);
    expect(await world().canEnter({ ...own, password: 'battery staple' })).toBe(true);
    await page.reload();
    await page.getByRole('heading', { name: 'Password and e-mail' }).waitFor();
    await page.context().close();
  });

  long('the e-mail address is changed by a link sent to the new one', async () => {
    const { page, own } = await world().open('access');
    const email = `new-${own.email}`;
    await page.getByLabel('New e-mail address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(own.password);
    await press(page, 'Send link');
    await page.getByText(`A link was sent to ${email}`).waitFor();
    await page.goto(linkIn(await world().mail.mailTo(email), 'confirm-email'));
    await page.getByRole('button').click();
    await page.goto(`${world().url}/console/`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await signIn(page, world().url, { ...own, email });
    await page.context().close();
  });

  long('a forgotten password: requested, set by the link, sessions ended', async () => {
    const { page: signedIn, own, token } = await world().open('profile');
    const { page, faults } = await openPage(world().browser, 'phone');
    await page.goto(`${world().url}/console/`);
    await press(page, 'Forgot your password?');
    await page.getByLabel('E-mail address').fill(own.email);
    await press(page, 'Send e-mail');
    await page.getByText(`If ${own.email} has an account here`).waitFor();
    await page.goto(linkIn(await world().mail.mailTo(own.email), 'reset'));
    await page.locator('input[type=password]').fill('a new password');
    await page.getByRole('button').click();
    await page.getByRole('link').click();
    expect(await world().statusOf(token)).toBe(401);
    await signIn(page, world().url, { ...own, password: 'a new password' });
    await signedIn.reload();
    await signedIn.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
    await signedIn.context().close();
  });

  long('the account is deleted with its password, after a second question', async () => {
    const { page, own } = await world().open('delete');
    const password = page.getByLabel('Password', { exact: true });
    const ask = async (text: string) => {
      await password.fill(text);
      await press(page, 'Delete account');
    };
    await ask(own.password);
    await inDialog(page, 'Cancel');
    await ask('a wrong one');
    await inDialog(page, 'Delete permanently');
    await page.getByText('The password is wrong.').waitFor();
    expect(await world().canEnter(own)).toBe(true);
    await ask(own.password);
    await inDialog(page, 'Delete permanently');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await world().canEnter(own)).toBe(false);
    await page.context().close();
  });

  long('signing in and registering show errors at their field', async () => {
    const watched = await openPage(world().browser, 'light', { locale: 'de-DE' });
    const { page } = watched;
    await page.goto(`${world().url}/console/`);
    const password = page.getByLabel('Passwort', { exact: true });
    await page.getByLabel('E-Mail-Adresse').fill(person.email);
    await password.fill('a wrong one');
    await press(page, 'Passwort anzeigen');
    expect(await password.getAttribute('type')).toBe('text');
    await press(page, 'Anmelden');
    await page.getByText('E-Mail-Adresse oder Passwort ist falsch.').waitFor();
    expect(await password.getAttribute('aria-invalid')).toBe('true');
    expect(await password.getAttribute('autocomplete')).toBe('current-password');
    await press(page, 'Konto anlegen');
    expect(await password.getAttribute('autocomplete')).toBe('new-password');
    await page.getByLabel('E-Mail-Adresse').fill(person.email);
    await password.fill('long enough');
    await press(page, 'Konto anlegen');
    await page.getByText('Zu dieser Adresse gibt es schon ein Konto.').waitFor();
    await checkPage(watched, 'sign-in-taken-light');
    await page.context().close();
  });
}
