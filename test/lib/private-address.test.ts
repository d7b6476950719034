import { expect, test } from 'vitest';
import { isPrivateAddress, isPrivateHost } from '../../src/lib/address.ts';

/** The first address of each network that IANA lists as not on the public internet (RFC 6890). */
const firstAddresses = [
  '0.0.0.0 10.0.0.0 100.64.0.0 127.0.0.0 169.254.0.0 172.16.0.0 192.0.0.0 192.0.2.0 192.88.99.0',
  '192.168.0.0 198.18.0.0 198.51.100.0 203.0.113.0 224.0.0.0 240.0.0.0',
  '::ffff:0:0:0 :: 64:ff9b:1:: 100:: 2001:: 2001:db8:: 2002:: 3fff:: 5f00:: fc00:: fe80:: fec0:: ff00::',
].flatMap((line) => line.split(' '));

test.each(firstAddresses)('%s, the first address of a special network, is private', (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

test.each([
  '0.0.0.0',
  '10.255.255.255',
  '100.127.255.255',
  '127.0.0.1',
  '169.254.169.254',
  '172.31.255.255',
  '192.168.1.1',
  '198.19.255.255',
  '239.255.255.250',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:a00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b::',
  '64:ff9b:1::808:808',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'ff02::1',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  'localhost',
  '',
])('%s is private', (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

test.each([
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '223.255.255.255',
  '::ffff:1.1.1.1',
  '::ffff:101:101',
  '64:ff9b::1.1.1.1',
  '64:ff9b::808:0',
  '2606:4700:4700::1111',
  '2a00:1450:4001:800::200e',
])('%s is of the public internet', (address) => {
  expect(isPrivateAddress(address)).toBe(false);
});

test.each([
  ['http://127.1/', true],
  ['http://2130706433/', true],
  ['http://0x7f000001/', true],
  ['http://0177.0.0.1/', true],
  ['http://[::1]/', true],
  ['http://[::ffff:127.0.0.1]/', true],
  ['http://1.1.1.1/', false],
  ['http://example.org/', false],
])('the host of %s is private: %s', (url, isPrivate) => {
  expect(isPrivateHost(new URL(url).hostname)).toBe(isPrivate);
});
