import type { Page } from 'playwright-core';
import type { Filled } from './filled.ts';

/** A page of the console for `every-page.long.test.ts`, which checks it in light and dark mode, on a phone, zoomed … */
export type PageCase = {
  name: string;
  /** For the account with devices, the one without, or nobody. */
  of: 'filled' | 'empty' | 'nobody';
  /** Below /console/. */
  path: (uuids: Filled['uuids']) => string;
  /** What is on the screen once the page has loaded. */
  ready: string;
  /** What a person does to get there: opens a dialog, a tab. */
  act?: (page: Page) => Promise<void>;
};

const at = (path: string) => () => path;

const ask = (selector: string) => async (page: Page) => {
  await page.locator(selector).first().click();
  await page.getByRole('dialog').waitFor();
};

const deviceTab = (tab: string): PageCase => ({
  name: `device-${tab}`,
  of: 'filled',
  path: ({ boxes }) => `devices/${boxes}?tab=${tab}`,
  ready: '.tab-content > *',
});

/** A section of the account page, for the account that has more to show. */
const section = (name: string): PageCase => ({
  name: `account-${name}`,
  of: 'filled',
  path: () => `account/${name}`,
  ready: '.shell h2, .shell form',
});

const sections = ['profile', 'contacts', 'access', 'sessions', 'keys', 'usage', 'audit', 'delete'];

/** Every page, dialog and empty state. A new one gets its line here, and is checked. */
export const pageCases: PageCase[] = [
  { name: 'sign-in', of: 'nobody', path: at(''), ready: 'input[name=password]' },
  { name: 'fleet', of: 'filled', path: at(''), ready: '.fleet tbody tr:nth-child(8)' },
  { name: 'fleet-none', of: 'filled', path: at('?search=nothing'), ready: '.empty' },
  { name: 'fleet-empty', of: 'empty', path: at(''), ready: '.empty' },
  { name: 'add', of: 'filled', path: at('add'), ready: '.template' },
  {
    name: 'device',
    of: 'filled',
    path: ({ boxes }) => `devices/${boxes}`,
    ready: '.shell:has(.chart canvas):has(.events li):has(.alarm)',
  },
  {
    name: 'device-why',
    of: 'filled',
    path: ({ boxes }) => `devices/${boxes}?tab=why`,
    ready: '.why li',
  },
  {
    name: 'device-rejections',
    of: 'filled',
    path: ({ hostile }) => `devices/${hostile}?tab=rejections`,
    ready: '.rejections li',
  },
  ...(['told', 'profile', 'settings', 'access'] as const).map(deviceTab),
  {
    name: 'watch',
    of: 'filled',
    path: ({ boxes }) => `watch/${boxes}`,
    ready: '.shell form',
  },
  {
    name: 'record',
    of: 'filled',
    path: ({ boxes }) => `record/${boxes}`,
    ready: '.record-signature',
  },
  { name: 'profiles', of: 'filled', path: at('profiles'), ready: '.installed li' },
  { name: 'actions', of: 'filled', path: at('actions'), ready: '.jobs li, .jobs .empty' },
  { name: 'actions-none', of: 'empty', path: at('actions'), ready: '.empty' },
  { name: 'profiles-none', of: 'empty', path: at('profiles'), ready: '.empty' },
  { name: 'rules', of: 'filled', path: at('rules'), ready: '.shell:has(.installed)' },
  { name: 'rules-empty', of: 'empty', path: at('rules'), ready: '.rule-templates button' },
  {
    name: 'rule',
    of: 'filled',
    path: at('rules'),
    ready: '.rule-templates button',
    act: async (page) => {
      await page.locator('.rule-templates button').first().click();
      await page.locator('.event-form').waitFor();
    },
  },
  { name: 'map-none', of: 'filled', path: at('map'), ready: '.empty' },
  {
    name: 'device-empty',
    of: 'filled',
    path: ({ silent }) => `devices/${silent}`,
    ready: '.tab-content .empty',
  },
  { name: 'alarms', of: 'filled', path: at('alarms'), ready: '.alarm' },
  {
    name: 'alarms-details',
    of: 'filled',
    path: at('alarms'),
    ready: '.alarm',
    act: (page) => page.locator('.alarm-details summary').first().click(),
  },
  {
    name: 'alarms-snooze',
    of: 'filled',
    path: at('alarms'),
    ready: '.alarm',
    act: ask('.alarm-actions button:nth-of-type(2)'),
  },
  { name: 'alarms-none', of: 'filled', path: at('alarms?label=none'), ready: '.empty' },
  { name: 'alarms-empty', of: 'empty', path: at('alarms'), ready: '.empty' },
  { name: 'alarms-closed', of: 'empty', path: at('alarms?state=closed'), ready: '.empty' },
  {
    name: 'menu',
    of: 'filled',
    path: at('alarms'),
    ready: '.alarm',
    act: (page) => page.locator('.foot summary').click(),
  },
  {
    name: 'help',
    of: 'empty',
    path: at('alarms'),
    ready: '.empty',
    act: async (page) => {
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
    },
  },
  ...sections.map(section),
  { name: 'not-found', of: 'empty', path: at('nowhere'), ready: '.empty' },
];
